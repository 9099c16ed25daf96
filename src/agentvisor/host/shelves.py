"""The door to shelves: changes and reads of one by its name, and which there are below a prefix.

Temporal's lists lag behind what was acknowledged (decision 0014), so a shelf is announced before it begins: its
namespace stays on a shelf of news of its owner's for longer than any list lags. Whatever a list or the news name is
read by its id before it counts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from time import time
from uuid import uuid4
from weakref import WeakValueDictionary

from temporalio.client import Client
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError

from agentvisor.core.errors import Conflict, InvalidInput, NotFound, StateTooLarge, Unavailable
from agentvisor.core.item_namespaces import Labels
from agentvisor.core.shelf import Change, ChangeKind, Item, Shelf, ShelfName, ShelfSettings
from agentvisor.host.shelf_places import LABELS, keyword, keywords, workflow_id
from agentvisor.host.temporal_calls import Start, shelf_calls
from agentvisor.host.workflow.shelf import CLOSING, SHELF_WORKFLOW
from agentvisor.host.workflow.showing import METADATA
from agentvisor.protocol.shelves import changes_to_messages, item_from_message, settings_to_message, shelf_to_message
from agentvisor.protocol.v1 import items_pb2

ITEMS = "items"
_NEWS = "news"
_NEWS_MS = 600_000
"""How long a new shelf is on the news: far longer than Temporal's lists lag."""
_AT_ONCE = 4
"""Updates of one shelf that this host has under way: Temporal lets 10 be in flight, of all hosts."""
_READERS = 16
_CLOSING_PAUSE = 0.05
_CLOSING_TRIES = 200


@dataclass(frozen=True, slots=True)
class ShelfDefaults:
    """What the configuration says of shelves."""

    deployment: str
    """The task queue of threads: two deployments on one Temporal share no items."""
    settings: ShelfSettings = field(default_factory=ShelfSettings)
    most_searched: int = 10_000
    """Namespaces that one search or list looks through."""

    @property
    def task_queue(self) -> str:
        """Of the workers that serve shelves."""
        return f"{self.deployment}:shelves"


@dataclass(frozen=True, slots=True)
class Found:
    """What a shelf shows."""

    items: list[Item] = field(default_factory=list[Item])
    matched: int = 0
    """How many the filter let through."""
    alive: int = 0


class Shelves:
    """Shelves of one deployment; holds nothing that matters."""

    def __init__(self, client: Client, defaults: ShelfDefaults) -> None:
        self._client = client
        self._calls = shelf_calls(client)
        self._defaults = defaults
        self._changing: WeakValueDictionary[ShelfName, asyncio.Semaphore] = WeakValueDictionary()

    async def change(self, name: ShelfName, changes: Sequence[Change]) -> None:
        """Make all of the changes, or none, durably; where one sets an item, the shelf begins where there is none.

        Raises `Conflict` where an item is not at its expected revision, `StateTooLarge`, `Unavailable`.
        """
        message = items_pb2.ChangeShelf(
            changes=changes_to_messages(changes), settings=settings_to_message(self._defaults.settings)
        )
        begins = any(one.kind is ChangeKind.SET for one in changes)
        limit = self._changing.setdefault(name, asyncio.Semaphore(_AT_ONCE))
        async with limit:
            for _ in range(_CLOSING_TRIES):
                try:
                    await self._change(name, message.SerializeToString(), begins=begins)
                except Conflict as error:
                    if CLOSING not in error.details:
                        raise
                    if not begins:
                        return  # what is being erased has nothing that could be removed
                    await asyncio.sleep(_CLOSING_PAUSE)
                except NotFound:
                    if any(one.expected_revision for one in changes):
                        raise Conflict("it was deleted meanwhile: read it again") from None
                    return
                else:
                    return
        raise Unavailable(f"namespace {list(name.namespace)} is being erased: try again")

    async def _change(self, name: ShelfName, argument: bytes, *, begins: bool) -> None:
        place, update_id = workflow_id(self._defaults.deployment, name), uuid4().hex
        try:
            await self._calls.update(place, "change", argument, update_id=update_id)
        except NotFound:
            if not begins:
                raise
            await self._announce(name)
            await self._calls.update(place, "change", argument, update_id=update_id, start=self._beginning(name))

    async def _announce(self, name: ShelfName) -> None:
        if name.kind != ITEMS:
            return  # whoever has it asks for it by its name
        key = json.dumps(name.namespace)
        news = Change(ChangeKind.SET, key, b"{}", _NEWS_MS)
        try:
            await self.change(_news_of(name.kind, name.owner), [news])
        except StateTooLarge as error:
            raise Unavailable("too many namespaces are new: try again in some minutes") from error

    async def forget_news(self, name: ShelfName) -> None:
        """Take a namespace that has ended off the news."""
        await self.change(_news_of(name.kind, name.owner), [Change(ChangeKind.REMOVE, json.dumps(name.namespace))])

    def _beginning(self, name: ShelfName) -> Start:
        return Start(
            SHELF_WORKFLOW,
            shelf_to_message(Shelf(name, settings=self._defaults.settings)).SerializeToString(),
            self._defaults.task_queue,
            memo={LABELS: json.dumps(name.namespace)},
            search_attributes=TypedSearchAttributes(
                [SearchAttributePair(METADATA, keywords(self._defaults.deployment, name))]
            ),
        )

    async def read(
        self,
        name: ShelfName,
        *,
        keys: Iterable[str] = (),
        filter_json: bytes = b"",
        skip: int = 0,
        limit: int = 1_000_000,
    ) -> Found:
        """The items of these keys, or those that a filter lets through; a shelf that does not exist is empty."""
        now = int(time() * 1000)
        asked = items_pb2.ReadShelf(keys=keys, filter=filter_json, skip=skip, limit=limit, now_ms=now)
        place = workflow_id(self._defaults.deployment, name)
        try:
            answer = await self._calls.ask(place, "read", asked.SerializeToString())
        except NotFound:
            return Found()
        reply = items_pb2.ReadShelfReply.FromString(answer)
        return Found([item_from_message(one) for one in reply.items], reply.matched, reply.alive)

    async def read_many(self, names: Iterable[ShelfName], *, filter_json: bytes = b"", limit: int) -> list[Found]:
        """`read` of each, several at a time."""
        readers = asyncio.Semaphore(_READERS)

        async def one(name: ShelfName) -> Found:
            async with readers:
                return await self.read(name, filter_json=filter_json, limit=limit)

        return await asyncio.gather(*map(one, names))

    async def named_below(self, kind: str, owner: str, prefix: Labels) -> list[Labels]:
        """Namespaces below a prefix, sorted: every one that has items, and some that have none any more."""
        # The news first: what falls off it has long been in the list.
        news = await self.read(_news_of(kind, owner))
        found = {labels for item in news.items if (labels := _labels(item.key))[: len(prefix)] == prefix}
        found.update(await self._listed(kind, owner, prefix))
        if len(found) > self._defaults.most_searched:
            raise self._too_many(prefix)
        return sorted(found)

    async def _listed(self, kind: str, owner: str, prefix: Labels) -> set[Labels]:
        word = keyword(self._defaults.deployment, kind, owner, prefix)
        asked = f"WorkflowType = '{SHELF_WORKFLOW}' AND ExecutionStatus = 'Running' AND AgentVisorMetadata = '{word}'"
        found: set[Labels] = set()
        try:
            async for one in self._client.list_workflows(asked):
                memo = await one.memo()
                found.add(_labels(str(memo[LABELS])))
                if len(found) > self._defaults.most_searched:
                    raise self._too_many(prefix)
        except RPCError as error:
            raise Unavailable(f"Temporal could not list namespaces ({error.status.name}): {error.message}") from error
        return found

    def _too_many(self, prefix: Labels) -> InvalidInput:
        most = self._defaults.most_searched
        return InvalidInput(
            f"more than {most} namespaces are below {list(prefix)}: give a longer prefix (store.most_searched)",
            field="namespace_prefix",
        )


def _news_of(kind: str, owner: str) -> ShelfName:
    return ShelfName(_NEWS, owner, (kind,))


def _labels(text: str) -> Labels:
    return tuple(json.loads(text))
