"""Traces by OpenTelemetry's SDK, sent as OTLP over HTTP; where to, and how much, its own OTEL_* variables say."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from time import monotonic

import structlog
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from typing_extensions import override

from agentvisor.host.tracing.place import Place, within
from agentvisor.host.tracing.spans import Attributes, Kind, Span, Told

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.tracing")

_CLOSE_SECONDS = 2.0
"""What a host that stops gives to spans which are still to be sent."""
_TELL_EVERY = 60.0
"""Seconds between two lines on spans that could not be sent."""
_KINDS = {
    Kind.INTERNAL: trace.SpanKind.INTERNAL,
    Kind.SERVER: trace.SpanKind.SERVER,
    Kind.CLIENT: trace.SpanKind.CLIENT,
}


class Otel:
    """The traces of one host. It takes no global of OpenTelemetry's: those are its embedder's."""

    is_on = True

    def __init__(self, *, version: str, host_id: str, service_name: str | None) -> None:
        # Its own lines come one for each batch and each span; ours say the same once a minute.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        named = {"service.name": service_name} if service_name else {}
        said = Resource.create({"service.version": version, "service.instance.id": host_id, **named})
        if not service_name and str(said.attributes.get("service.name", "")).startswith("unknown_service"):
            said = said.merge(Resource({"service.name": "agentvisor"}))
        self._exporter = _Told(OTLPSpanExporter())
        self._processor = BatchSpanProcessor(self._exporter)
        self._ids = _Ids()
        self._provider = TracerProvider(resource=said, shutdown_on_exit=False, id_generator=self._ids)
        self._provider.add_span_processor(self._processor)
        self._tracer = self._provider.get_tracer("agentvisor", version)

    @contextmanager
    def span(self, name: str, kind: Kind, parent: Place | None, attributes: Attributes) -> Generator[Span]:
        context = trace.set_span_in_context(trace.NonRecordingSpan(_context(parent))) if parent else None
        # An empty context, not none: what an embedder has made current is no parent of ours.
        span = self._tracer.start_span(
            name, context or trace.set_span_in_context(trace.INVALID_SPAN), _KINDS[kind], attributes
        )
        live = _Live(span)
        try:
            with within(live.place):
                yield live
        except Exception as error:
            live.fail(type(error).__name__)
            raise
        finally:
            span.end()

    def tell(self, span: Told) -> None:
        # OpenTelemetry gives no span an id that is asked for, but asks a generator for the next one.
        self._ids.next = int(span.place.span_id, 16)
        told = self._tracer.start_span(
            span.name,
            trace.set_span_in_context(trace.NonRecordingSpan(_context(span.parent))),
            attributes=span.attributes,
            links=[trace.Link(_context(span.after))] if span.after else [],
            start_time=span.start_ms * 1_000_000,
        )
        if span.error:
            told.set_status(trace.StatusCode.ERROR, span.error)
        told.end(max(span.start_ms, span.end_ms) * 1_000_000)

    async def close(self) -> None:
        """In a thread that nobody has to wait for: a collector that does not answer must not hold a host."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._processor.shutdown()
            if not loop.is_closed():
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=shut_down, name="traces-close", daemon=True).start()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await done.wait()
        except TimeoutError:
            self._exporter.give_up()


class _Live:
    def __init__(self, span: trace.Span) -> None:
        self._span = span
        context = span.get_span_context()
        self.place: Place | None = Place(
            trace.format_trace_id(context.trace_id),
            trace.format_span_id(context.span_id),
            context.trace_flags.sampled,
            context.trace_state.to_header(),
        )

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def note(self, attributes: Attributes) -> None:
        self._span.set_attributes(dict(attributes))

    def fail(self, why: str) -> None:
        self._span.set_status(trace.StatusCode.ERROR, why)


class _Told(SpanExporter):
    """Says in the log that spans are not taken, and not for each batch."""

    def __init__(self, inner: OTLPSpanExporter) -> None:
        self._inner = inner
        self._lost, self._told_at = 0, float("-inf")

    @override
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._inner.export(spans)
        if result is not SpanExportResult.SUCCESS:
            self._lost += len(spans)
            now = monotonic()
            if now - self._told_at >= _TELL_EVERY:
                log.warning("traces_not_sent", spans=self._lost, hint="see OTEL_EXPORTER_OTLP_ENDPOINT")
                self._lost, self._told_at = 0, now
        return result

    @override
    def shutdown(self) -> None:
        self._inner.shutdown()

    def give_up(self) -> None:
        """End what is being sent, and what would be tried again."""
        self._inner.shutdown()


class _Ids(RandomIdGenerator):
    """Ids by chance, but for a span whose id is known. All are made in the host's one thread."""

    next: int | None = None

    @override
    def generate_span_id(self) -> int:
        wanted, self.next = self.next, None
        return wanted or super().generate_span_id()


def _context(place: Place) -> trace.SpanContext:
    return trace.SpanContext(
        int(place.trace_id, 16),
        int(place.span_id, 16),
        True,
        trace.TraceFlags(trace.TraceFlags.SAMPLED if place.sampled else trace.TraceFlags.DEFAULT),
        trace.TraceState.from_header([place.state] if place.state else []),
    )
