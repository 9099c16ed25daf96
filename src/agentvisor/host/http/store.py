"""The store of items over HTTP: what agents keep beside their threads, by namespace and key."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from agentvisor.core.errors import InvalidInput
from agentvisor.host.http.json import JsonResponse, JsonRoute, decode, encode
from agentvisor.host.http.run_create import JsonObject
from agentvisor.host.http.services import Served, Services
from agentvisor.host.http.times import iso
from agentvisor.host.items import MOST_LISTED
from agentvisor.host.render_typed import Json
from agentvisor.protocol.v1 import items_pb2

router = APIRouter(prefix="/store", tags=["store"], route_class=JsonRoute)

_MINUTE_MS = 60_000


class ItemPut(BaseModel):
    """An item to store."""

    model_config = ConfigDict(extra="forbid")

    namespace: list[str]
    key: str
    value: JsonObject
    index: Literal[False] | list[str] | None = Field(
        default=None, description="Without effect: there is no index of meanings."
    )
    ttl: float | None = Field(
        default=None, gt=0, le=5_000_000, allow_inf_nan=False, strict=True, description="Minutes; none: as configured."
    )


class ItemDelete(BaseModel):
    """An item to delete."""

    model_config = ConfigDict(extra="forbid")

    namespace: list[str]
    key: str


class ItemSearch(BaseModel):
    """Which items to list."""

    model_config = ConfigDict(extra="forbid")

    namespace_prefix: list[str] | None = None
    filter: JsonObject | None = None
    limit: int = Field(default=10, ge=1, le=MOST_LISTED, strict=True)
    offset: int = Field(default=0, ge=0, le=2**31, strict=True)
    query: str | None = Field(default=None, description="Without effect: there is no index of meanings.")
    refresh_ttl: bool | None = None


class NamespaceSearch(BaseModel):
    """Which namespaces to list."""

    model_config = ConfigDict(extra="forbid")

    prefix: list[str] | None = None
    suffix: list[str] | None = None
    max_depth: int | None = Field(default=None, ge=1, le=2**31, strict=True)
    limit: int = Field(default=100, ge=1, le=MOST_LISTED, strict=True)
    offset: int = Field(default=0, ge=0, le=2**31, strict=True)


@router.put("/items", status_code=204)
async def put_item(body: ItemPut, services: Served) -> Response:
    """Store an item, or another value of it."""
    put = items_pb2.PutItem(
        namespace=_texts(body.namespace, "namespace"),
        key=_text(body.key, "key"),
        value=encode(body.value),
        ttl_ms=None if body.ttl is None else max(1, int(body.ttl * _MINUTE_MS)),
    )
    await _answer(services, items_pb2.ItemOperation(put=put))
    return Response(status_code=204)


@router.get("/items")
async def get_item(
    services: Served,
    key: str,
    namespace: Annotated[list[str], Query(description="Labels, or labels joined with periods.")],
    refresh_ttl: bool | None = None,  # noqa: FBT001 - a query parameter
) -> JsonResponse:
    """An item, or null."""
    labels = namespace[0].split(".") if len(namespace) == 1 else namespace
    get = items_pb2.GetItem(namespace=_texts(labels, "namespace"), key=_text(key, "key"), refresh_ttl=refresh_ttl)
    result = await _answer(services, items_pb2.ItemOperation(get=get))
    return JsonResponse(_item(result.items[0]) if result.items else None)


@router.delete("/items", status_code=204)
async def delete_item(body: ItemDelete, services: Served) -> Response:
    """Delete an item; nothing happens where there is none."""
    gone = items_pb2.DeleteItem(namespace=_texts(body.namespace, "namespace"), key=_text(body.key, "key"))
    await _answer(services, items_pb2.ItemOperation(delete=gone))
    return Response(status_code=204)


@router.post("/items/search")
async def search_items(body: ItemSearch, services: Served) -> JsonResponse:
    """The items of every namespace below a prefix, by namespace."""
    search = items_pb2.SearchItems(
        namespace_prefix=_texts(body.namespace_prefix or [], "namespace_prefix"),
        filter=encode(body.filter) if body.filter else b"",
        limit=body.limit,
        offset=body.offset,
        refresh_ttl=body.refresh_ttl,
    )
    result = await _answer(services, items_pb2.ItemOperation(search=search))
    return JsonResponse({"items": [{**_item(one), "score": None} for one in result.items]})


@router.post("/namespaces")
async def list_namespaces(body: NamespaceSearch, services: Served) -> JsonResponse:
    """The namespaces that have items, sorted."""
    asked = items_pb2.ListItemNamespaces(
        prefix=_texts(body.prefix or [], "prefix"),
        suffix=_texts(body.suffix or [], "suffix"),
        max_depth=body.max_depth,
        limit=body.limit,
        offset=body.offset,
    )
    result = await _answer(services, items_pb2.ItemOperation(list_namespaces=asked))
    return JsonResponse({"namespaces": [list[Json](one.labels) for one in result.namespaces]})


async def _answer(services: Services, operation: items_pb2.ItemOperation) -> items_pb2.ItemResult:
    request = items_pb2.ItemsRequest(operations=[operation])
    return (await services.items.answer(services.owner, request)).results[0]


def _item(found: items_pb2.FoundItem) -> dict[str, Json]:
    return {
        "namespace": list[Json](found.namespace),
        "key": found.key,
        "value": decode(found.value, "the value"),
        "created_at": iso(found.created_at_ms),
        "updated_at": iso(found.updated_at_ms),
    }


def _texts(labels: list[str], field: str) -> list[str]:
    return [_text(one, field) for one in labels]


def _text(text: str, field: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{field} {text[:80]!r} is not valid Unicode text", field=field) from None
    return text
