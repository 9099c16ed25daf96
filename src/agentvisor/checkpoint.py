"""`agentvisor.checkpoint`: an agent without a framework's checkpointer keeps its state by itself (S11).

Each save is durable before it returns, and survives whatever dies. A thread keeps as many saves of each key as it
keeps checkpoints. Every function has its asynchronous twin.
"""

from __future__ import annotations

import builtins

from agentvisor.client import saves
from agentvisor.client.connection import connect, own_run, thread_of
from agentvisor.client.operations import Call, begin
from agentvisor.client.saves import Saved
from agentvisor.client.strict_json import dump
from agentvisor.core.errors import InvalidInput
from agentvisor.core.keys import checked_key

__all__ = ["Saved", "alist", "aload", "asave", "list", "load", "save"]


def save(key: str, state: object, *, thread_id: str | None = None) -> str:
    """Save a state under a key; the save's id, once it is durable.

    Args:
        key: 1 to 256 characters.
        state: JSON. Anything else is refused with `InvalidInput` (a `ValueError`) that names the path of what is not.
        thread_id: outside a run the thread, which is made where it does not exist; inside it is the run's own.

    Raises `ValueTooLarge` and `StateTooLarge` with the key where there is no room, `Conflict` outside a run while a run
    is active on the thread.
    """
    return _save(key, state, thread_id).result()


async def asave(key: str, state: object, *, thread_id: str | None = None) -> str:
    """`save`, awaited."""
    return await _save(key, state, thread_id).wait()


def load(id: str = "", *, key: str | None = None, thread_id: str | None = None) -> object:
    """The state of the save with that id; without one the thread's latest, or the latest of a key.

    None where nothing is saved yet. Raises `NotFound` for an id that this thread does not have, and `InvalidInput` (a
    `ValueError`) for a checkpoint of LangGraph, which its own checkpointer reads.
    """
    return _load(id, key, thread_id).result()


async def aload(id: str = "", *, key: str | None = None, thread_id: str | None = None) -> object:
    """`load`, awaited."""
    return await _load(id, key, thread_id).wait()


def list(key: str | None = None, *, limit: int | None = None, thread_id: str | None = None) -> builtins.list[Saved]:
    """The thread's saves, or those of one key, the newest first, without their states."""
    return _list(key, limit, thread_id).result()


async def alist(
    key: str | None = None, *, limit: int | None = None, thread_id: str | None = None
) -> builtins.list[Saved]:
    """`list`, awaited."""
    return await _list(key, limit, thread_id).wait()


def _save(key: str, state: object, thread_id: str | None) -> Call[str]:
    thread, data = thread_of(thread_id), dump(state, "state")
    connection = connect()
    saving = saves.save(thread, _checked(key), data, own_run(), known=connection.known, limits=connection.limits)
    return begin(saving, connection.transport)


def _load(id: str, key: str | None, thread_id: str | None) -> Call[object]:
    if not isinstance(id, str):  # pyright: ignore[reportUnnecessaryIsInstance] (a caller without a type checker)
        raise InvalidInput(f"the id of a save is a string, not {type(id).__name__}", field="id")
    thread, connection = thread_of(thread_id), connect()
    checked = None if key is None else _checked(key)
    return begin(saves.load(thread, id, checked, connection.known), connection.transport)


def _list(key: str | None, limit: int | None, thread_id: str | None) -> Call[builtins.list[Saved]]:
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit is {limit}: it is at least 1", field="limit")
    thread = thread_of(thread_id)
    checked = None if key is None else _checked(key)
    return begin(saves.listed(thread, checked, limit), connect().transport)


def _checked(key: object) -> str:
    return checked_key(key, "the key of a save")
