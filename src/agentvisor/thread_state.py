"""`agentvisor.thread_state`: named JSON values of a thread that live beside its checkpoints (S13).

Each change is durable before it returns. A value has a revision, which grows with every change: a writer that gives the
one it has read (`expected_revision`; 0: there is none yet) is refused with `Conflict` where somebody was faster, and
nothing is changed then. `scope` is a name space of keys. Every function has its asynchronous twin. Inside a run the
thread is the run's own; outside it is named (`thread_id`).
"""

from __future__ import annotations

from collections.abc import Mapping

from agentvisor.client.connection import connect, own_run, thread_of
from agentvisor.client.operations import Call, Operation, T, begin
from agentvisor.client.state import Entry, Place, State
from agentvisor.client.strict_json import dump
from agentvisor.core.errors import InvalidInput
from agentvisor.core.keys import checked_key, checked_scope

__all__ = [
    "Entry", "aappend", "adelete", "aentry", "aget", "aitems", "akeys", "append", "aset", "aupdate", "delete", "entry",
    "get", "items", "keys", "set", "update",
]  # fmt: skip


def get(key: str, default: object = None, *, scope: str = "", thread_id: str | None = None) -> object:
    """The value; of a list that was appended to, the whole list. `default` where there is none."""
    found = entry(key, scope=scope, thread_id=thread_id)
    return default if found is None else found.value


async def aget(key: str, default: object = None, *, scope: str = "", thread_id: str | None = None) -> object:
    """`get`, awaited."""
    found = await aentry(key, scope=scope, thread_id=thread_id)
    return default if found is None else found.value


def entry(key: str, *, scope: str = "", thread_id: str | None = None) -> Entry | None:
    """The value with its revision; None where there is none."""
    return _begin(_state().entry(_place(key, scope, thread_id))).result()


async def aentry(key: str, *, scope: str = "", thread_id: str | None = None) -> Entry | None:
    """`entry`, awaited."""
    return await _begin(_state().entry(_place(key, scope, thread_id))).wait()


def set(  # noqa: A001 (the name that everybody expects beside get)
    key: str, value: object, *, expected_revision: int | None = None, scope: str = "", thread_id: str | None = None
) -> int:
    """Set a value, which is JSON; its new revision."""
    return _begin(_set(_place(key, scope, thread_id), value, expected_revision)).result()


async def aset(
    key: str, value: object, *, expected_revision: int | None = None, scope: str = "", thread_id: str | None = None
) -> int:
    """`set`, awaited."""
    return await _begin(_set(_place(key, scope, thread_id), value, expected_revision)).wait()


def update(
    key: str,
    changes: Mapping[str, object],
    *,
    expected_revision: int | None = None,
    scope: str = "",
    thread_id: str | None = None,
) -> int:
    """Set members of the object that is the value, and leave its others; the new revision.

    Begins with an empty object where there is no value. Raises `InvalidInput` where the value is no object.
    """
    return _begin(_update(_place(key, scope, thread_id), changes, expected_revision)).result()


async def aupdate(
    key: str,
    changes: Mapping[str, object],
    *,
    expected_revision: int | None = None,
    scope: str = "",
    thread_id: str | None = None,
) -> int:
    """`update`, awaited."""
    return await _begin(_update(_place(key, scope, thread_id), changes, expected_revision)).wait()


def delete(key: str, *, expected_revision: int | None = None, scope: str = "", thread_id: str | None = None) -> bool:
    """Delete a value; whether there was one."""
    return _begin(_state().delete(_place(key, scope, thread_id), _revision(expected_revision))).result()


async def adelete(
    key: str, *, expected_revision: int | None = None, scope: str = "", thread_id: str | None = None
) -> bool:
    """`delete`, awaited."""
    return await _begin(_state().delete(_place(key, scope, thread_id), _revision(expected_revision))).wait()


def append(
    key: str, item: object, *, expected_revision: int | None = None, scope: str = "", thread_id: str | None = None
) -> int:
    """Append an item to the list that is the value; the new revision.

    Begins a list where there is no value. Only the item is sent and stored, however long the list is. Raises
    `InvalidInput` where the value is no list.
    """
    return _begin(_append(_place(key, scope, thread_id), item, expected_revision)).result()


async def aappend(
    key: str, item: object, *, expected_revision: int | None = None, scope: str = "", thread_id: str | None = None
) -> int:
    """`append`, awaited."""
    return await _begin(_append(_place(key, scope, thread_id), item, expected_revision)).wait()


def items(key: str, start: int = 0, *, scope: str = "", thread_id: str | None = None) -> list[object]:
    """The items of a list from that one on, without reading those before; none where there is no value."""
    return _begin(_state().items(_place(key, scope, thread_id), _start(start))).result()


async def aitems(key: str, start: int = 0, *, scope: str = "", thread_id: str | None = None) -> list[object]:
    """`items`, awaited."""
    return await _begin(_state().items(_place(key, scope, thread_id), _start(start))).wait()


def keys(prefix: str = "", *, scope: str = "", thread_id: str | None = None) -> list[str]:
    """The keys of a scope that begin with that, in order."""
    return _begin(_state().keys(thread_of(thread_id), checked_scope(scope), prefix)).result()


async def akeys(prefix: str = "", *, scope: str = "", thread_id: str | None = None) -> list[str]:
    """`keys`, awaited."""
    return await _begin(_state().keys(thread_of(thread_id), checked_scope(scope), prefix)).wait()


def _set(place: Place, value: object, expected: int | None) -> Operation[int]:
    return _state().set(place, dump(value, "value"), _revision(expected))


def _append(place: Place, item: object, expected: int | None) -> Operation[int]:
    return _state().append(place, dump(item, "item"), _revision(expected))


def _update(place: Place, changes: Mapping[str, object], expected: int | None) -> Operation[int]:
    if not isinstance(changes, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] (a caller without a type checker)
        raise InvalidInput(f"changes is an object, not {type(changes).__name__}", field="changes")
    given = dict(changes)
    dump(given, "changes")
    return _state().update(place, given, _revision(expected))


def _begin(operation: Operation[T]) -> Call[T]:
    return begin(operation, connect().transport)


def _state() -> State:
    # Inside a run a request is sent once; outside, it may be sent again where the host has gone away.
    return State(connect(), resends=not own_run())


def _place(key: str, scope: str, thread_id: str | None) -> Place:
    return Place(thread_of(thread_id), checked_scope(scope), checked_key(key, "the key of thread state"))


def _revision(expected: object) -> int | None:
    if expected is None or (isinstance(expected, int) and not isinstance(expected, bool) and 0 <= expected < 1 << 64):
        return expected
    raise InvalidInput(f"expected_revision is {expected!r}: it is a revision, or 0", field="expected_revision")


def _start(start: int) -> int:
    if not 0 <= start < 1 << 32:
        raise InvalidInput(f"start is {start}: items are counted from 0", field="start")
    return start
