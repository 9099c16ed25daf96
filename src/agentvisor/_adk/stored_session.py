"""A session as a thread's state holds it: one list, its creation first, then an item for each event.

What the session's state is follows from the list: the state that it was created with, and each event's changes. So an
event and its changes are one write, and a session's cost grows with what is added, never with what is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import cast
from urllib.parse import quote

from google.adk.events.event import Event
from pydantic_core import PydanticSerializationError

from agentvisor._adk.scoped_state import ScopedState
from agentvisor._adk.thread_store import Entry
from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json

Item = Mapping[str, Json]

LONGEST_NAME = 72


@dataclass(frozen=True)
class SessionKey:
    """Names a session: the same id under another user or app is another one."""

    app: str
    user: str
    id: str

    def __str__(self) -> str:
        return f"{prefix_of(self.app, self.user)}{_quoted(self.id)}"

    @property
    def of_app(self) -> str:
        """The key of what all sessions of the app share."""
        return f"app/{_quoted(self.app)}"

    @property
    def of_user(self) -> str:
        """The key of what all sessions of the user share in the app."""
        return f"user/{_quoted(self.app)}/{_quoted(self.user)}"


def prefix_of(app: str, user: str | None = None) -> str:
    """What the keys of an app's sessions begin with, or of a user's in it."""
    return f"session/{_quoted(app)}/" + (f"{_quoted(user)}/" if user is not None else "")


def _quoted(name: str) -> str:
    # A key has 256 characters; what a long name was stands in the session itself.
    quoted = quote(name, safe="")
    return quoted if len(quoted) <= LONGEST_NAME else f"~{sha256(name.encode()).hexdigest()}"


def creation(key: SessionKey, state: ScopedState, created_at: float, stamp: int) -> dict[str, Json]:
    """The first item."""
    shared: dict[str, Json] = {"stamp": stamp} if state.is_shared else {}
    return {
        "app": key.app,
        "user": key.user,
        "id": key.id,
        "created_at": created_at,
        "state": cast("Json", state.merged()),
        **shared,
    }


def appended(event: Event, run_id: str, stamp: int) -> dict[str, Json]:
    """The item of an event. `stamp` orders changes to what sessions share; 0 where there are none."""
    try:
        plain = event.model_dump_json(exclude_none=True)
    except PydanticSerializationError as error:
        raise InvalidInput(f"{_unstorable(event)} is not JSON: {error}", event_id=event.id) from error
    item: dict[str, Json] = {"event": json.loads(plain)}
    if run_id:
        item["run"] = run_id
    if stamp:
        item["stamp"] = stamp
    return item


def _unstorable(event: Event) -> str:
    """What of an event is no JSON: mostly what a tool has returned."""
    for one in event.get_function_responses():
        try:
            one.model_dump_json()
        except PydanticSerializationError:
            return f"what the tool {one.name} returned"
    return f"an event of {event.author}"


@dataclass(frozen=True)
class SharedChange:
    """What one item changed beyond its session."""

    stamp: int
    state: ScopedState


class StoredSession:
    """What was read of a session at one revision."""

    def __init__(self, entry: Entry) -> None:
        first, *rest = cast("list[Item]", entry.value)
        self._first = first
        self._rest = rest
        self.revision = entry.revision
        self.key = SessionKey(str(first["app"]), str(first["user"]), str(first["id"]))

    @cached_property
    def events(self) -> list[Event]:
        """All events, oldest first. Each call of a new instance makes new ones: nobody shares them."""
        # By JSON text: only then does ADK read bytes back as it wrote them.
        return [Event.model_validate_json(json.dumps(item["event"])) for item in self._rest]

    @property
    def runs(self) -> list[str]:
        """For each event the run that appended it; empty outside one."""
        return [str(item.get("run", "")) for item in self._rest]

    @property
    def event_ids(self) -> list[str]:
        return [str(_event(item)["id"]) for item in self._rest]

    @property
    def updated_at(self) -> float:
        """When it was last changed, by the events' own clock, as ADK has it."""
        newest = _event(self._rest[-1])["timestamp"] if self._rest else self._first["created_at"]
        return cast("float", newest)

    def own_state(self) -> dict[str, Json]:
        """The session's own part of its state."""
        state = dict(ScopedState.of(_object(self._first["state"])).session)
        for item in self._rest:
            state |= ScopedState.of(_changes(item)).session
        return state

    def shared_changes(self) -> Iterator[SharedChange]:
        """What it changed for others too, oldest first."""
        for item, state in [(self._first, self._first["state"]), *((one, _changes(one)) for one in self._rest)]:
            if "stamp" in item:
                yield SharedChange(cast("int", item["stamp"]), ScopedState.of(_object(state)))


def _event(item: Item) -> Mapping[str, Json]:
    return _object(item["event"])


def _changes(item: Item) -> Mapping[str, Json]:
    actions = _event(item).get("actions")
    return _object(_object(actions).get("state_delta")) if actions else {}


def _object(value: object) -> Mapping[str, Json]:
    return cast("Mapping[str, Json]", value) if isinstance(value, Mapping) else {}
