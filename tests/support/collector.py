"""A collector of traces: takes OTLP over HTTP as the real ones do, and keeps the spans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from tests.support.waiting_sync import until
from tests.support.webhooks import Receiver, receiving


@dataclass(frozen=True)
class Spanned:
    """One span as it came."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any]
    links: tuple[str, ...]
    failed: bool
    service: str


@dataclass
class Collector:
    """What has come so far."""

    receiver: Receiver
    _read: int = 0
    _spans: list[Spanned] = field(default_factory=list[Spanned])

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to send its spans here, soon after they have ended."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.receiver.url(""), "OTEL_BSP_SCHEDULE_DELAY": "100"}

    @property
    def spans(self) -> list[Spanned]:
        got = self.receiver.got[self._read :]
        self._read += len(got)
        for one in got:
            assert one.path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(one.body).resource_spans:
                service = str(_values(resource.resource.attributes)["service.name"])
                for scope in resource.scope_spans:
                    self._spans += [
                        Spanned(
                            span.trace_id.hex(),
                            span.span_id.hex(),
                            span.parent_span_id.hex(),
                            span.name,
                            span.kind,
                            span.start_time_unix_nano,
                            span.end_time_unix_nano,
                            _values(span.attributes),
                            tuple(link.span_id.hex() for link in span.links),
                            span.status.code == 2,
                            service,
                        )
                        for span in scope.spans
                    ]
        return self._spans

    def trace(self, trace_id: str) -> list[Spanned]:
        return [one for one in self.spans if one.trace_id == trace_id]

    def named(self, trace_id: str, name: str) -> list[Spanned]:
        return sorted((one for one in self.trace(trace_id) if one.name == name), key=lambda one: one.start_ns)

    def until(self, trace_id: str, name: str, count: int = 1) -> list[Spanned]:
        """The spans of that name, once there are so many."""
        until(lambda: len(self.named(trace_id, name)) >= count)
        return self.named(trace_id, name)

    def twice(self) -> list[str]:
        """Spans that came more than once."""
        seen = Counter((one.trace_id, one.span_id) for one in self.spans)
        return [name for (_, name), count in seen.items() if count > 1]


def _values(attributes: Any) -> dict[str, Any]:
    return {one.key: _value(one) for one in attributes}


def _value(one: KeyValue) -> Any:
    kind = one.value.WhichOneof("value")
    return getattr(one.value, kind) if kind else None


@contextmanager
def collecting() -> Generator[Collector]:
    """A collector on a port of its own."""
    with receiving() as receiver:
        yield Collector(receiver)
