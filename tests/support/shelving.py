"""Shelves on a real Temporal server, served by workers of this process, as each host does it."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

from temporalio import activity
from temporalio.client import Client

from agentvisor.core.shelf import ShelfName, ShelfSettings
from agentvisor.host.erasing import Eraser
from agentvisor.host.items import ItemLimits, Items
from agentvisor.host.shelf_places import workflow_id
from agentvisor.host.shelves import ITEMS, ShelfDefaults, Shelves
from agentvisor.host.temporal_client import connect
from agentvisor.host.worker import shelf_worker
from agentvisor.host.workflow.shelf import ERASE_ACTIVITY
from agentvisor.protocol.v1 import items_pb2


class _Keeper(Eraser):
    @activity.defn(name=ERASE_ACTIVITY)
    async def erase(self, request: bytes) -> None:
        """Whatever is asked for stays."""


@dataclass(frozen=True)
class ShelfHost:
    client: Client
    shelves: Shelves
    items: Items
    deployment: str

    async def put(
        self, namespace: list[str], key: str, value: object = None, *, owner: str = "", ttl_ms: int = 0
    ) -> None:
        put = items_pb2.PutItem(namespace=namespace, key=key, value=json.dumps(value or {}).encode(), ttl_ms=ttl_ms)
        await self._answer(owner, items_pb2.ItemOperation(put=put))

    async def delete(self, namespace: list[str], key: str, *, owner: str = "") -> None:
        await self._answer(owner, items_pb2.ItemOperation(delete=items_pb2.DeleteItem(namespace=namespace, key=key)))

    async def get(self, namespace: list[str], key: str, *, owner: str = "") -> object:
        get = items_pb2.GetItem(namespace=namespace, key=key)
        found = (await self._answer(owner, items_pb2.ItemOperation(get=get))).items
        return json.loads(found[0].value) if found else None

    async def search(self, prefix: list[str], *, owner: str = "") -> dict[str, object]:
        """Values by "namespace/key"."""
        search = items_pb2.SearchItems(namespace_prefix=prefix, limit=1000)
        found = (await self._answer(owner, items_pb2.ItemOperation(search=search))).items
        return {"/".join([*one.namespace, one.key]): json.loads(one.value) for one in found}

    async def namespaces(self, prefix: list[str], *, owner: str = "") -> list[list[str]]:
        asked = items_pb2.ListItemNamespaces(prefix=prefix, limit=1000)
        found = (await self._answer(owner, items_pb2.ItemOperation(list_namespaces=asked))).namespaces
        return [list(one.labels) for one in found]

    async def has_compacted(self, *namespace: str, owner: str = "") -> bool:
        """Whether the shelf has continued as new."""
        place = workflow_id(self.deployment, ShelfName(ITEMS, owner, namespace))
        description = await self.client.get_workflow_handle(place).describe()
        return description.run_id != description.raw_description.workflow_execution_info.first_run_id

    async def _answer(self, owner: str, operation: items_pb2.ItemOperation) -> items_pb2.ItemResult:
        return (await self.items.answer(owner, items_pb2.ItemsRequest(operations=[operation]))).results[0]


def new_deployment() -> str:
    return f"q-{uuid4().hex[:8]}"


@asynccontextmanager
async def shelf_host(
    address: str, deployment: str, settings: ShelfSettings | None = None, *, erases: bool = True
) -> AsyncGenerator[ShelfHost]:
    """A host's part that serves the shelves of a deployment, while the context lasts.

    `erases=False`: histories stay, so that they can be recorded.
    """
    client = await connect(address, "default")
    defaults = ShelfDefaults(deployment, settings or ShelfSettings())
    shelves = Shelves(client, defaults)
    eraser = Eraser(client, shelves) if erases else _Keeper(client, shelves)
    async with shelf_worker(client, eraser, task_queue=defaults.task_queue):
        yield ShelfHost(client, shelves, Items(shelves, ItemLimits()), deployment)
