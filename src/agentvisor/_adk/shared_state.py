"""What the sessions of an app, or of a user in it, share within a thread: `app:` and `user:` state.

It is written right after the item that changed it, which is what counts: whoever reads that session brings this up to
date, so that a process that dies in between loses no change and makes none twice. Each value stands beside the stamp of
its change; the greater stamp wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from agentvisor._adk.stored_session import SessionKey, SharedChange
from agentvisor._adk.thread_store import ThreadKeys
from agentvisor.protocol.metadata import Json

Stamped = dict[str, tuple[int, Json]]
"""By key without its prefix: a stamp and the value."""


@dataclass(frozen=True)
class SharedState:
    """As it was read."""

    app: Stamped
    user: Stamped

    @property
    def next_stamp(self) -> int:
        """Greater than all that were seen."""
        return 1 + max((stamp for stamp, _ in [*self.app.values(), *self.user.values()]), default=0)


async def read(store: ThreadKeys, key: SessionKey) -> SharedState:
    """What a session sees of it."""
    return SharedState(await _read(store, key.of_app), await _read(store, key.of_user))


async def write(store: ThreadKeys, key: SessionKey, known: SharedState, changes: Iterable[SharedChange]) -> None:
    """Bring it up to date with a session's changes, and `known` too; nothing is written where it is."""
    app: Stamped = {}
    user: Stamped = {}
    for change in changes:
        _apply(known.app, app, change.state.app, change.stamp)
        _apply(known.user, user, change.state.user, change.stamp)
    for where, new in ((key.of_app, app), (key.of_user, user)):
        if new:
            await store.update(where, {one: list(stamped) for one, stamped in new.items()})


def values(stamped: Stamped) -> dict[str, Json]:
    """Without the stamps."""
    return {key: value for key, (_, value) in stamped.items()}


def _apply(known: Stamped, new: Stamped, changes: dict[str, Json], stamp: int) -> None:
    for key, value in changes.items():
        if stamp > known.get(key, (0, None))[0]:
            known[key] = new[key] = (stamp, value)


async def _read(store: ThreadKeys, where: str) -> Stamped:
    entry = await store.entry(where)
    found = cast("dict[str, tuple[int, Json]]", entry.value) if entry is not None else {}
    return {key: (stamp, value) for key, (stamp, value) in found.items()}
