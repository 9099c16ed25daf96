"""A shelf: the items of one namespace of one owner, and what changes, shows and ends them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple, cast

from agentvisor.core.errors import Conflict, StateTooLarge
from agentvisor.core.item_filter import passes
from agentvisor.core.item_namespaces import Labels

SHELF_VERSION = 1
_ITEM_OVERHEAD = 64
"""Of an item as it is stored, beside its key and value; at most."""
_SHELF_OVERHEAD = 4096


@dataclass(frozen=True, slots=True)
class ShelfName:
    """Which shelf: nobody reaches another owner's, whatever else is equal."""

    kind: str
    owner: str
    namespace: Labels


@dataclass(frozen=True, slots=True)
class ShelfSettings:
    """Limits and upkeep, pinned with every change."""

    max_bytes: int = 1_800_000
    erase_after_ms: int = 60_000
    """After so long what was removed is erased from Temporal's history too."""
    linger_ms: int = 2_000
    """An empty shelf ends after so long."""
    compact_events: int = 2_000
    compact_updates: int = 500


@dataclass(frozen=True, slots=True)
class Item:
    """A value by its key."""

    key: str
    value: bytes
    """JSON."""
    created_at_ms: int
    updated_at_ms: int
    ttl_ms: int = 0
    """0: it lives until it is removed."""
    expires_at_ms: int = 0
    revision: int = 0

    def is_alive(self, now_ms: int) -> bool:
        """Whether it is to be shown."""
        return not self.expires_at_ms or now_ms < self.expires_at_ms

    @property
    def stored_bytes(self) -> int:
        """What it takes of the shelf, at most."""
        return len(self.key.encode()) + len(self.value) + _ITEM_OVERHEAD


class ChangeKind(Enum):
    """What a change does with an item."""

    SET = "set"
    REMOVE = "remove"
    TOUCH = "touch"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one item."""

    kind: ChangeKind
    key: str
    value: bytes = b""
    ttl_ms: int = 0
    expected_revision: int | None = None
    """0: there must be no such item."""


class Selection(NamedTuple):
    """Items that were asked for."""

    items: list[Item]
    matched: int
    """How many the filter let through."""


@dataclass(slots=True)
class Shelf:
    """The state of one shelf's workflow."""

    name: ShelfName
    items: dict[str, Item] = field(default_factory=dict[str, Item])
    revision: int = 0
    settings: ShelfSettings = field(default_factory=ShelfSettings)
    leftovers: list[str] = field(default_factory=list[str])
    """Executions that this one continues from and that are still to be erased."""

    def check(self, changes: Iterable[Change], now_ms: int, max_bytes: int) -> None:
        """Refuse changes that cannot all be made: `Conflict` where somebody was faster, `StateTooLarge`."""
        after = dict(self.items)
        for change in changes:
            found = self._alive(change.key, now_ms)
            revision = found.revision if found is not None else 0
            if change.expected_revision is not None and revision != change.expected_revision:
                raise Conflict(
                    f"{change.key[:80]!r} was changed meanwhile: it is at revision {revision}, not "
                    f"{change.expected_revision}: read it again",
                    key=change.key[:80],
                    revision=str(revision),
                )
            if change.kind is ChangeKind.SET:
                after[change.key] = Item(change.key, change.value, 0, 0)
            elif change.kind is ChangeKind.REMOVE:
                after.pop(change.key, None)
        size = _size(after.values())
        if size > max_bytes and size > self.stored_bytes:
            raise StateTooLarge(
                f"namespace {list(self.name.namespace)} would hold {size} bytes in {len(after)} items, the limit is "
                f"{max_bytes} (storage.max_state): spread items over more namespaces, delete some, or store references "
                "to large data",
                size=str(size),
                limit=str(max_bytes),
            )

    @property
    def stored_bytes(self) -> int:
        """What the shelf takes, at most."""
        return _size(self.items.values())

    def apply(self, changes: Iterable[Change], now_ms: int) -> None:
        """Make changes that were checked."""
        self.expire(now_ms)
        for change in changes:
            self.revision += 1
            match change.kind:
                case ChangeKind.SET:
                    self._set(change, now_ms)
                case ChangeKind.REMOVE:
                    self.items.pop(change.key, None)
                case ChangeKind.TOUCH:
                    self._touch(change.key, now_ms)

    def _set(self, change: Change, now_ms: int) -> None:
        before = self.items.get(change.key)
        self.items[change.key] = Item(
            change.key,
            change.value,
            before.created_at_ms if before is not None else now_ms,
            now_ms,
            change.ttl_ms,
            now_ms + change.ttl_ms if change.ttl_ms else 0,
            self.revision,
        )

    def _touch(self, key: str, now_ms: int) -> None:
        found = self.items.get(key)
        if found is not None and found.ttl_ms:
            self.items[key] = replace(found, expires_at_ms=now_ms + found.ttl_ms)

    def expire(self, now_ms: int) -> int:
        """Remove what has expired; how many they were."""
        dead = [key for key, item in self.items.items() if not item.is_alive(now_ms)]
        for key in dead:
            del self.items[key]
        return len(dead)

    def next_expiry_ms(self) -> int | None:
        """When the next item expires."""
        return min((item.expires_at_ms for item in self.items.values() if item.expires_at_ms), default=None)

    def select(
        self, *, keys: Iterable[str] = (), filter_json: bytes = b"", skip: int = 0, limit: int, now_ms: int
    ) -> Selection:
        """The items of these keys; without keys, those that a filter lets through, in the order in which they came."""
        wanted = list(keys)
        if wanted:
            found = [item for key in wanted if (item := self._alive(key, now_ms)) is not None]
            return Selection(found, len(found))
        lets_through = _test(filter_json)
        found = [item for item in self.items.values() if item.is_alive(now_ms) and lets_through(item)]
        return Selection(found[skip : skip + limit], len(found))

    def alive(self, now_ms: int) -> int:
        """How many items there are to be shown."""
        return sum(item.is_alive(now_ms) for item in self.items.values())

    def _alive(self, key: str, now_ms: int) -> Item | None:
        found = self.items.get(key)
        return found if found is not None and found.is_alive(now_ms) else None


def _size(items: Iterable[Item]) -> int:
    return _SHELF_OVERHEAD + sum(item.stored_bytes for item in items)


def _test(filter_json: bytes) -> Callable[[Item], bool]:
    if not filter_json:
        return lambda _: True
    wanted: Mapping[str, object] = json.loads(filter_json)
    return lambda item: passes(cast("Mapping[str, object]", json.loads(item.value)), wanted)
