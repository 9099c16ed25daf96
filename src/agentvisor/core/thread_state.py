"""Thread state: named JSON values of a thread beside its checkpoints, each changed by its revision (S13).

A value is a blob, and what is appended to a list is a blob each, so that an append costs what the item costs. Bytes are
opaque here: whoever journals a change has looked at them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from agentvisor.core.ids import BlobKey

MADE_CHANGES = 64
"""Of the last changes that have a name, so many are known again when they come a second time."""

_ENTRY = 96
_ITEM = 40
"""Bytes that an entry and an item take beside their names and values, about."""


class ChangeKind(IntEnum):
    SET = 1
    APPEND = 2
    DELETE = 3


@dataclass(frozen=True, slots=True)
class StateChange:
    """What becomes of an entry; journalled whole, with the revision that it makes."""

    scope: str
    key: str
    kind: ChangeKind
    revision: int
    at_ms: int
    blob: BlobKey | None = None
    """The value that is set, or the item."""
    is_list: bool = False
    value_items: int = 0
    """Of a value that is set: whether it is a list, and of how many items."""
    change_id: bytes = b""
    """Names a change that may come twice."""


@dataclass(slots=True)
class StateEntry:
    """One key's value; of a list, with what was appended to it."""

    scope: str
    key: str
    revision: int
    updated_at_ms: int
    value: BlobKey | None = None
    """None: all items were appended."""
    is_list: bool = True
    value_items: int = 0
    items: list[BlobKey] = field(default_factory=list[BlobKey])

    @property
    def blobs(self) -> list[BlobKey]:
        return [*([self.value] if self.value is not None else ()), *self.items]

    @property
    def stored_bytes(self) -> int:
        return _ENTRY + len(self.scope.encode()) + len(self.key.encode()) + _ITEM * len(self.items)


@dataclass(slots=True)
class ThreadState:
    """A thread's entries by scope and key."""

    revision: int = 0
    """Of the last change. It never goes back: an entry that was deleted and set anew has another revision."""
    entries: dict[tuple[str, str], StateEntry] = field(default_factory=dict[tuple[str, str], StateEntry])
    made: dict[bytes, int] = field(default_factory=dict[bytes, int])
    """The revisions that the last named changes have made."""

    def __iter__(self) -> Iterator[StateEntry]:
        return iter(self.entries.values())

    def get(self, scope: str, key: str) -> StateEntry | None:
        return self.entries.get((scope, key))

    def listed(self, scope: str, prefix: str, after: str) -> list[StateEntry]:
        """A scope's entries whose keys begin so and come after that one, in the order of their keys."""
        chosen = [
            one
            for one in self.entries.values()
            if one.scope == scope and one.key.startswith(prefix) and (not after or one.key > after)
        ]
        return sorted(chosen, key=lambda one: one.key)

    def change(self, change: StateChange) -> list[BlobKey]:
        """Apply a change; the blobs that are needed no longer. Its own blob is needed from now on.

        A change that was applied already changes nothing: revisions only grow. Then its blob is needed no longer.
        """
        if change.revision <= self.revision:
            return [change.blob] if change.blob is not None else []
        self.revision = change.revision
        if change.change_id:
            self.made[change.change_id] = change.revision
            while len(self.made) > MADE_CHANGES:
                del self.made[next(iter(self.made))]
        name = (change.scope, change.key)
        known = self.entries.get(name)
        if change.kind is ChangeKind.DELETE:
            return self.entries.pop(name).blobs if known is not None else []
        if change.kind is ChangeKind.SET or known is None:
            is_set = change.kind is ChangeKind.SET
            self.entries[name] = StateEntry(
                change.scope, change.key, change.revision, change.at_ms, change.blob if is_set else None
            )
            entry = self.entries[name]
            if is_set:
                entry.is_list, entry.value_items = change.is_list, change.value_items
            elif change.blob is not None:
                entry.items.append(change.blob)
            return known.blobs if known is not None else []
        if change.blob is not None:
            known.items.append(change.blob)
        known.revision, known.updated_at_ms = change.revision, change.at_ms
        return []

    @property
    def stored_bytes(self) -> int:
        """Without the values."""
        return sum(one.stored_bytes for one in self.entries.values()) + 32 * len(self.made)
