"""How the room of a thread is divided, so that one that is full still takes what makes it smaller."""

from __future__ import annotations

from dataclasses import dataclass

from agentvisor.core.errors import StateTooLarge
from agentvisor.core.ids import ThreadId

_LARGEST = 64 * 1024
_SMALLEST = 8 * 1024
"""For the records of runs with their errors, whatever the limit is."""
_SMALL_INPUT = 4096
"""Bytes of a run: where one of no more does not fit, the thread is what is too large."""


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes that cannot be left out of a thread's state, up to which each may fill it.

    The reserve over `growth` is for what has to go on in a full thread: a run begins with checkpoints that hold its
    input besides all that was there, and ends with an error or a question; a client's session is a run, too.
    """

    growth: int
    """What agents and clients store."""
    beginnings: int
    """A run's first checkpoints and control writes: half of the reserve is left for the runs themselves."""
    runs: int
    """Runs with their inputs. A quarter is left for sessions and what an execution's end adds."""
    step: int
    """By how much a run's state may exceed what it was after its first checkpoints: a node on the way."""


def room_in(limit: int) -> Room:
    """Divide `storage.max_state`."""
    reserve = reserve_of(limit)
    return Room(limit - reserve, limit - reserve // 2, limit - reserve // 4, reserve // 64)


def reserve_of(limit: int) -> int:
    """A sixteenth, between 8 and 64 KiB; of a very small limit a quarter."""
    return min(_LARGEST, max(_SMALLEST, limit // 16), limit // 4)


def check_room(thread_id: ThreadId, held: int, more: int, most: int) -> None:
    """Raise `StateTooLarge` where a run adds more to a thread than it has room for."""
    if held + more <= most:
        return
    way_out = (
        "pass references to large data"
        if more > _SMALL_INPUT
        else "store a smaller checkpoint with AgentVisorCheckpointer, prune the thread, or begin another one"
    )
    raise StateTooLarge(
        f"thread {thread_id} holds {held} bytes that cannot be left out, this run with its input adds {more}, "
        f"and the limit is {most} (storage.max_state, less a reserve): {way_out}",
        size=str(held + more),
        limit=str(most),
    )


def check_metadata(thread_id: ThreadId, before: int, after: int, held: int, limit: int) -> None:
    """Raise `StateTooLarge` where a thread's metadata grows past a quarter of its room, or past what is left of that.

    Args:
        thread_id: whose metadata it is.
        before: bytes of the metadata that it has.
        after: of what would take its place; what does not grow is always taken.
        held: bytes of the thread that cannot be left out, with the metadata that it has.
        limit: `storage.max_state`.
    """
    # Each read of a thread brings its metadata beside its runs and heads, all in one reply.
    most = min(limit // 4, room_in(limit).growth - held + before)
    if after <= max(before, most):
        return
    raise StateTooLarge(
        f"the metadata of thread {thread_id} would have {after} bytes, and there is room for {max(most, 0)} (a quarter "
        "of storage.max_state at most, less in a full thread): store large data in values or in the store, and set "
        "keys that nobody needs to null",
        size=str(after),
        limit=str(max(most, 0)),
    )
