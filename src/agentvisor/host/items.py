"""Store items of one owner: what HTTP and agents ask for, as changes and reads of shelves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from agentvisor.core.errors import InvalidInput, ValueTooLarge
from agentvisor.core.item_filter import check_filter
from agentvisor.core.item_namespaces import Labels, item_key, literal_beginning, matches, readable, writable
from agentvisor.core.shelf import Change, ChangeKind, Item, ShelfName
from agentvisor.host.http.json import decode
from agentvisor.host.shelves import ITEMS, Shelves
from agentvisor.protocol.v1 import items_pb2

MOST_LISTED = 1000
"""Items, or namespaces, in one answer."""
_MOST_BYTES = 6 * 1024 * 1024
"""Of one answer: an agent's channel takes 8 MiB."""
_LONGEST_TTL_MS = 10 * 366 * 24 * 3600 * 1000
_AT_A_TIME = 32
"""Namespaces that are read at once; a page that is full reads no further."""

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class ItemLimits:
    """What the configuration says of items."""

    max_item: int = 1_500_000
    default_ttl_ms: int = 0
    """0: items live until they are deleted."""
    refreshes: bool = True
    """Reading an item begins its time to live anew, where the reader does not say."""


class Items:
    """The store of every owner; each call says whose it is for."""

    def __init__(self, shelves: Shelves, limits: ItemLimits) -> None:
        self._shelves = shelves
        self._limits = limits

    async def answer(self, owner: str, request: items_pb2.ItemsRequest) -> items_pb2.ItemsReply:
        """Carry out what is asked for: reads first, then writes, each namespace's all at once."""
        operations = list(request.operations)
        writes = _by_namespace(self._change(one) for one in operations if one.WhichOneof("kind") in ("put", "delete"))
        reads = [self._read(owner, one) for one in operations]
        reply = items_pb2.ItemsReply(results=await asyncio.gather(*reads))
        _check_size(reply.ByteSize())
        await self._change_all((ShelfName(ITEMS, owner, place), changes) for place, changes in writes.items())
        return reply

    async def _change_all(self, changes: Iterable[tuple[ShelfName, Mapping[str, Change]]]) -> None:
        """Change each shelf; what one refuses is raised once all have answered."""
        work = [self._shelves.change(name, list(one.values())) for name, one in changes]
        for outcome in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    # --- writes ----------------------------------------------------------------------------------------------------

    def _change(self, operation: items_pb2.ItemOperation) -> tuple[Labels, Change]:
        if operation.WhichOneof("kind") == "delete":
            gone = operation.delete
            return readable(gone.namespace), Change(ChangeKind.REMOVE, item_key(gone.key))
        put = operation.put
        namespace, key = writable(put.namespace), item_key(put.key)
        if len(put.value) > self._limits.max_item:
            raise ValueTooLarge(
                f"item {key[:80]!r} of namespace {list(namespace)} has {len(put.value)} bytes, the limit is "
                f"{self._limits.max_item} (storage.max_inline_value): store a reference to large data instead",
                size=str(len(put.value)),
                limit=str(self._limits.max_item),
            )
        _decoded(put.value, f"the value of item {key[:80]!r}", "value")
        ttl_ms = put.ttl_ms if put.HasField("ttl_ms") else self._limits.default_ttl_ms
        if not 0 <= ttl_ms <= _LONGEST_TTL_MS:
            raise InvalidInput("ttl must be a time in minutes, from more than 0 to 10 years", field="ttl")
        return namespace, Change(ChangeKind.SET, key, put.value, ttl_ms)

    # --- reads -----------------------------------------------------------------------------------------------------

    async def _read(self, owner: str, operation: items_pb2.ItemOperation) -> items_pb2.ItemResult:
        match operation.WhichOneof("kind"):
            case "get":
                return await self._get(owner, operation.get)
            case "search":
                return await self._search(owner, operation.search)
            case "list_namespaces":
                listed = await self._namespaces(owner, operation.list_namespaces)
                return items_pb2.ItemResult(namespaces=[items_pb2.ItemNamespace(labels=one) for one in listed])
            case "put" | "delete":
                return items_pb2.ItemResult()
            case _:
                raise InvalidInput("this host does not know the store operation: it may be older than the SDK")

    async def _get(self, owner: str, asked: items_pb2.GetItem) -> items_pb2.ItemResult:
        name = ShelfName(ITEMS, owner, readable(asked.namespace))
        found = (await self._shelves.read(name, keys=[item_key(asked.key)])).items
        wanted = asked.refresh_ttl if asked.HasField("refresh_ttl") else None
        await self._refresh([(name, item) for item in found], wanted)
        return items_pb2.ItemResult(items=[_shown(name, item) for item in found])

    async def _search(self, owner: str, asked: items_pb2.SearchItems) -> items_pb2.ItemResult:
        prefix = readable(asked.namespace_prefix, "namespace_prefix")
        limit = _checked_limit(asked.limit)
        _checked_filter(asked.filter)
        found: list[tuple[ShelfName, Item]] = []
        skip, size = asked.offset, 0
        names = [ShelfName(ITEMS, owner, one) for one in await self._shelves.named_below(ITEMS, owner, prefix)]
        while names and len(found) < limit:
            batch, names = names[:_AT_A_TIME], names[_AT_A_TIME:]
            # What is skipped is not needed, but which shelf it ends in is known only afterwards.
            pages = await self._shelves.read_many(batch, filter_json=asked.filter, limit=skip + limit - len(found))
            for name, page in zip(batch, pages, strict=True):
                fresh = page.items[skip : skip + limit - len(found)]
                skip = max(0, skip - page.matched)
                found += [(name, item) for item in fresh]
                size += sum(len(item.value) for item in fresh)
            _check_size(size)
        await self._refresh(found, asked.refresh_ttl if asked.HasField("refresh_ttl") else None)
        return items_pb2.ItemResult(items=[_shown(name, item) for name, item in found])

    async def _refresh(self, found: Sequence[tuple[ShelfName, Item]], wanted: bool | None) -> None:  # noqa: FBT001 - None: as configured
        """Begin the time to live of what was read anew, where it has one."""
        if not (self._limits.refreshes if wanted is None else wanted):
            return
        touched = _by_namespace((name, Change(ChangeKind.TOUCH, item.key)) for name, item in found if item.ttl_ms)
        await self._change_all(touched.items())

    async def _namespaces(self, owner: str, asked: items_pb2.ListItemNamespaces) -> list[Labels]:
        """Those that have items, cut to a depth, each once; sorted."""
        prefix, suffix = readable(asked.prefix, "prefix"), readable(asked.suffix, "suffix")
        limit = _checked_limit(asked.limit)
        named = await self._shelves.named_below(ITEMS, owner, literal_beginning(prefix))
        waiting = [one for one in named if matches(one, prefix, suffix)]
        depth = asked.max_depth if asked.HasField("max_depth") else None
        found: list[Labels] = []
        enough = asked.offset + limit
        # Sorted, so that those of one beginning come together.
        while waiting and len(found) < enough:
            batch, waiting = waiting[:_AT_A_TIME], waiting[_AT_A_TIME:]
            shown = await self._shelves.read_many([ShelfName(ITEMS, owner, one) for one in batch], limit=0)
            alive = [one for one, page in zip(batch, shown, strict=True) if page.alive]
            found = list(dict.fromkeys([*found, *(one[:depth] for one in alive)]))
        return found[asked.offset : enough]


def _by_namespace(changes: Iterable[tuple[Key, Change]]) -> dict[Key, dict[str, Change]]:
    """Of several changes of one item in a request, the last."""
    found: dict[Key, dict[str, Change]] = {}
    for place, change in changes:
        found.setdefault(place, {})[change.key] = change
    return found


def _checked_limit(limit: int) -> int:
    if limit > MOST_LISTED:
        raise InvalidInput(f"limit is {limit}, and {MOST_LISTED} is the most: go on with offset", field="limit")
    return limit


def _checked_filter(text: bytes) -> None:
    if text:
        check_filter(_decoded(text, "the filter", "filter"))


def _decoded(text: bytes, what: str, field: str) -> Mapping[str, object]:
    try:
        value = decode(text, what)
    except ValueError as error:
        raise InvalidInput(str(error), field=field) from None
    if not isinstance(value, dict):
        raise InvalidInput(f"{what} must be a JSON object", field=field)
    return cast("Mapping[str, object]", value)


def _check_size(size: int) -> None:
    if size > _MOST_BYTES:
        raise ValueTooLarge(
            f"the items found have more than {_MOST_BYTES} bytes together: ask for fewer (limit)",
            limit=str(_MOST_BYTES),
        )


def _shown(name: ShelfName, item: Item) -> items_pb2.FoundItem:
    return items_pb2.FoundItem(
        namespace=name.namespace,
        key=item.key,
        value=item.value,
        created_at_ms=item.created_at_ms,
        updated_at_ms=item.updated_at_ms,
    )
