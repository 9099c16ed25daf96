"""An event of the protocol: what is told, before and after it has its number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentvisor.host.http.json import encode
from agentvisor.host.http.sse import ServerEvent
from agentvisor.host.render_typed import Json


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of a run."""

    method: str
    data: Json
    namespace: Sequence[str] = ()
    node: str | None = None
    name: str = ""
    """Names the event within its run, where every reader must find it under the same id although no tape has it."""


@dataclass(frozen=True, slots=True)
class Frame:
    """An event as clients get it."""

    seq: int
    event_id: str
    told: Told
    timestamp: int
    """Milliseconds: when it happened, and not when it is shown."""

    def json(self) -> dict[str, Json]:
        """The event as the protocol has it."""
        told = self.told
        params: dict[str, Json] = {
            "namespace": list(told.namespace),
            "timestamp": self.timestamp,
            "data": told.data,
        }
        if told.node is not None:
            params["node"] = told.node
        return {
            "type": "event",
            "event_id": self.event_id,
            "seq": self.seq,
            "method": told.method,
            "params": params,
        }

    def sse(self) -> ServerEvent:
        """The event for a stream of server-sent events."""
        return ServerEvent(self.told.method, encode(self.json()), self.seq)


@dataclass(frozen=True, slots=True)
class Missed:
    """Events that the client has not seen are not kept any more."""

    since: int
    available: int
    """Number of what comes next."""

    @property
    def message(self) -> str:
        """What the client reads."""
        return (
            f"events after {self.since} are no longer kept: what comes goes on at {self.available}, "
            "after the values as they are now"
        )

    def json(self) -> dict[str, Json]:
        """The error as it goes to a client that asked for nothing."""
        return {"type": "error", "id": None, **self.fields()}

    def fields(self) -> dict[str, Json]:
        """The error itself."""
        return {
            "error": "resume_gap",
            "message": self.message,
            "since": self.since,
            "min_available_seq": self.available,
        }

    def sse(self) -> ServerEvent:
        """The error for a stream of server-sent events."""
        return ServerEvent("error", encode(self.json()))
