"""Thread state as the SDK reads and changes it: an entry's value, what is appended to it, and the names of entries."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from agentvisor.client.connection import Connection
from agentvisor.client.known import ChannelName
from agentvisor.client.line import Line
from agentvisor.client.operations import Operation
from agentvisor.client.parts import Luggage, send
from agentvisor.client.put import announced
from agentvisor.client.reads import load_values
from agentvisor.client.requests import WAYS_OUT
from agentvisor.core.errors import Conflict, Corrupt, InvalidInput, ValueTooLarge
from agentvisor.core.thread_state import ChangeKind
from agentvisor.protocol.blobs import Stored, blob_key, encode_as, stored
from agentvisor.protocol.v1 import store_pb2

JSON = "json"
_TRIES = 20
"""At reading an entry that somebody else changes all the time."""
_TRIES_TO_UPDATE = 2_000
"""Where one fails another has come through, so that all do in the end: a hundred tasks of one super-step may update the
same entry. Twenty tries were too few for sixteen threads."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of thread state, and the revision that a change of it may expect."""

    value: object
    revision: int


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of a thread."""

    thread: str
    scope: str
    key: str

    @property
    def line(self) -> ChannelName:
        """The name of its values among those that this process knows."""
        return ChannelName(self.thread, f"|state|{self.scope}", self.key)

    def __str__(self) -> str:
        scope = f" (scope {self.scope!r})" if self.scope else ""
        return f"thread state {self.key!r}{scope}"


class State:
    """Reads and changes through one connection."""

    def __init__(self, connection: Connection, *, resends: bool) -> None:
        """`resends`: the transport may send a request twice, so that each change needs a name."""
        self._known = connection.known
        self._limits = connection.limits
        self._resends = resends

    # --- reading ---------------------------------------------------------------------------------------------------

    def entry(self, place: Place) -> Operation[Entry | None]:
        """The whole value with its revision; None where there is no entry."""
        found = yield from self._read(place, 0)
        return None if found is None else Entry(_value(*found), found[0].revision)

    def items(self, place: Place, start: int) -> Operation[list[object]]:
        """The items of a list from that one on; none where there is no entry."""
        found = yield from self._read(place, start)
        if found is None:
            return []
        entry, value, items = found
        if not entry.is_list:
            raise InvalidInput(f"{place} holds no list: read it with get", field="key")
        return [*(cast("list[object]", value)[start:] if value is not None else ()), *items]

    def keys(self, thread: str, scope: str, prefix: str) -> Operation[list[str]]:
        """The keys of a scope that begin so, in order."""
        found: list[str] = []
        asked = store_pb2.ListThreadState(scope=scope, prefix=prefix)
        while True:
            reply = yield store_pb2.StoreRequest(thread_id=thread, list_thread_state=asked)
            found.extend(one.key for one in reply.thread_state_listed.entries)
            if not reply.thread_state_listed.more:
                return found
            asked.after = found[-1]

    def _read(self, place: Place, start: int) -> Operation[_Read | None]:
        """An entry with its value (unless `start` is behind it) and the appended items, as they were at one moment."""
        for last in (*[False] * (_TRIES - 1), True):
            try:
                found = yield from self._attempt(place, start)
            except Corrupt:
                # Its value may have been replaced between the two requests.
                if last:
                    raise
                continue
            if found is not _CHANGED:
                return cast("_Read | None", found)
        raise Conflict(f"{place} changes too fast to be read: try again")

    def _attempt(self, place: Place, start: int) -> Operation[_Read | object | None]:
        entry = yield from _found(place, start)
        if entry is None:
            return None
        skipped = max(0, start - entry.value_items)
        page = entry if skipped == start else None
        value, items = None, list[object]()
        here = self._known.namespace_values(place.thread, place.line.namespace)
        if entry.value and (start < entry.value_items or not entry.is_list):
            loaded = yield from load_values(place.thread, [entry.value], here, {entry.value: str(place)})
            value = json.loads(loaded.values[entry.value].data)
            if not entry.appended and self._known.line(place.line) is None:
                self._known.set_line(place.line, loaded.line_to(entry.value))
        while skipped + len(items) < entry.appended:
            if page is None:
                page = yield from _found(place, skipped + len(items))
                if page is None or page.revision != entry.revision:
                    return _CHANGED
            keys, page = list(page.items), None
            loaded = yield from load_values(place.thread, list(dict.fromkeys(keys)), here, _named(place, keys))
            items.extend(json.loads(loaded.values[key].data) for key in keys)
            here = {key: loaded.values[key] for key in keys}
        return entry, value, items

    # --- changing --------------------------------------------------------------------------------------------------

    def set(self, place: Place, data: bytes, expected: int | None) -> Operation[int]:
        return (yield from self._change(place, ChangeKind.SET, data, expected))

    def append(self, place: Place, data: bytes, expected: int | None) -> Operation[int]:
        return (yield from self._change(place, ChangeKind.APPEND, data, expected))

    def delete(self, place: Place, expected: int | None) -> Operation[bool]:
        """Whether there was an entry."""
        revision = yield from self._change(place, ChangeKind.DELETE, b"", expected)
        return revision > 0

    def update(self, place: Place, changes: Mapping[str, object], expected: int | None) -> Operation[int]:
        """Set members of the object that the entry holds; one that does not exist begins as an empty object."""
        for left in range(_TRIES_TO_UPDATE, 0, -1):
            entry = yield from self.entry(place)
            before: object = {} if entry is None else entry.value
            is_now = 0 if entry is None else entry.revision
            if not isinstance(before, dict):
                if expected not in {None, is_now}:
                    raise Conflict(f"{place} is at revision {is_now}, and {expected} was expected: read it again")
                raise InvalidInput(f"{place} holds no object, whose members could be changed", field="key")
            merged = {**cast("dict[str, object]", before), **changes}
            revision = is_now if expected is None else expected
            try:
                return (yield from self.set(place, json.dumps(merged, separators=(",", ":")).encode(), revision))
            except Conflict as error:
                # Without a revision, it is not the entry that is in the way, but a run.
                if left == 1 or expected is not None or "revision" not in error.details:
                    raise
        raise AssertionError

    def _change(self, place: Place, kind: ChangeKind, data: bytes, expected: int | None) -> Operation[int]:
        change_id = os.urandom(16) if self._resends else b""
        for last in (False, True):
            request, line = self._request(place, kind, data)
            request.change_thread_state.change_id = change_id
            if expected is not None:
                request.change_thread_state.expected_revision = expected
            luggage = Luggage()
            blobs = [announced(blob, luggage) for blob in request.change_thread_state.blobs]
            del request.change_thread_state.blobs[:]
            request.change_thread_state.blobs.extend(blobs)
            try:
                yield from send(luggage.uploads, place.thread)
                reply = yield request
            except Corrupt:
                # The thread does not have what it had; or the host that was sent the parts is gone.
                if last:
                    raise
                self._known.forget(place.thread)
                continue
            if line is not None:
                self._known.set_line(place.line, line)
            return reply.thread_state_changed.revision
        raise AssertionError

    def _request(self, place: Place, kind: ChangeKind, data: bytes) -> tuple[store_pb2.StoreRequest, Line | None]:
        change = store_pb2.ChangeThreadState(scope=place.scope, key=place.key)
        line: Line | None = None
        if kind is ChangeKind.DELETE:
            change.delete = True
        else:
            key = blob_key(JSON, data)
            if kind is ChangeKind.SET:
                change.set = key
            else:
                change.append = key
            if not self._known.is_stored(place.thread, key):
                blob, line = self._encoded(place, key, data)
                change.blobs.append(blob)
        return store_pb2.StoreRequest(thread_id=place.thread, change_thread_state=change), line

    def _encoded(self, place: Place, key: bytes, data: bytes) -> tuple[store_pb2.Blob, Line]:
        limits = self._limits
        _check_size(place, len(data), limits.max_value_bytes, "storage.max_value")
        line = self._known.line(place.line)
        base = None if line is None else line.base()
        blob = encode_as(key, JSON, data, base, limits)
        _check_size(place, len(blob.data), limits.max_stored_bytes, "storage.max_inline_value")
        new: Stored = stored(blob, data, base)
        return blob, (line.extended(new, len(blob.data)) if line is not None and blob.base else Line.of([new], []))


_Read = tuple[store_pb2.ThreadStateEntry, object, list[object]]
_CHANGED = object()
"""The entry was changed between two pages."""


def _found(place: Place, start: int) -> Operation[store_pb2.ThreadStateEntry | None]:
    asked = store_pb2.GetThreadState(scope=place.scope, key=place.key, start=start)
    reply = yield store_pb2.StoreRequest(thread_id=place.thread, get_thread_state=asked)
    found = reply.thread_state_found
    return found.entry if found.HasField("entry") else None


def _value(entry: store_pb2.ThreadStateEntry, value: object, items: list[object]) -> object:
    if not entry.is_list:
        return value
    return [*(cast("list[object]", value) if value is not None else ()), *items]


def _named(place: Place, keys: Iterable[bytes]) -> dict[bytes, str]:
    return dict.fromkeys(keys, str(place))


def _check_size(place: Place, size: int, limit: int, setting: str) -> None:
    if size > limit:
        raise ValueTooLarge(
            f"{place} has {size} bytes, the limit is {limit} ({setting}): {WAYS_OUT}",
            key=place.key,
            size=str(size),
            limit=str(limit),
        )
