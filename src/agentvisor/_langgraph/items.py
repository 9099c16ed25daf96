"""LangGraph's store operations as messages, and results as LangGraph has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from agentvisor.client.strict_json import dump
from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.v1 import items_pb2

_MINUTE_MS = 60_000


def message_of(operation: Op) -> items_pb2.ItemOperation:
    """An operation as it is sent; `InvalidInput` names what of a value is not JSON."""
    match operation:
        case GetOp():
            get = items_pb2.GetItem(namespace=operation.namespace, key=operation.key, refresh_ttl=operation.refresh_ttl)
            return items_pb2.ItemOperation(get=get)
        case PutOp(value=None):
            gone = items_pb2.DeleteItem(namespace=operation.namespace, key=operation.key)
            return items_pb2.ItemOperation(delete=gone)
        case PutOp():
            return items_pb2.ItemOperation(put=_put(operation, cast("Mapping[str, object]", operation.value)))
        case SearchOp():
            return items_pb2.ItemOperation(search=_search(operation))
        case ListNamespacesOp():
            return items_pb2.ItemOperation(list_namespaces=_list_namespaces(operation))


def _put(operation: PutOp, value: Mapping[str, object]) -> items_pb2.PutItem:
    what = f"value of item {operation.key[:80]!r}"
    ttl = operation.ttl
    if ttl is not None and ttl <= 0:
        raise InvalidInput(f"ttl is {ttl} minutes: give more than 0, or none", field="ttl")
    return items_pb2.PutItem(
        namespace=operation.namespace,
        key=operation.key,
        value=dump(dict(value), what),
        ttl_ms=None if ttl is None else max(1, int(ttl * _MINUTE_MS)),
    )


def _search(operation: SearchOp) -> items_pb2.SearchItems:
    return items_pb2.SearchItems(
        namespace_prefix=operation.namespace_prefix,
        filter=dump(operation.filter, "filter") if operation.filter else b"",
        limit=_natural(operation.limit, "limit"),
        offset=_natural(operation.offset, "offset"),
        refresh_ttl=operation.refresh_ttl,
    )


def _list_namespaces(operation: ListNamespacesOp) -> items_pb2.ListItemNamespaces:
    return items_pb2.ListItemNamespaces(
        prefix=_pattern(operation.match_conditions, "prefix"),
        suffix=_pattern(operation.match_conditions, "suffix"),
        max_depth=None if operation.max_depth is None else _natural(operation.max_depth, "max_depth"),
        limit=_natural(operation.limit, "limit"),
        offset=_natural(operation.offset, "offset"),
    )


def _pattern(conditions: tuple[MatchCondition, ...] | None, kind: str) -> tuple[str, ...]:
    found = [one.path for one in conditions or () if one.match_type == kind]
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} conditions for the {kind} of a namespace: give one", field=kind)
    return found[0] if found else ()


def _natural(number: int, what: str) -> int:
    if not 0 <= number < 1 << 31:
        raise InvalidInput(f"{what} is {number}: give 0 or more", field=what)
    return number


def result_of(operation: Op, found: items_pb2.ItemResult) -> Result:
    """A result as LangGraph's own stores give it."""
    match operation:
        case GetOp():
            return Item(**_members(found.items[0])) if found.items else None
        case SearchOp():
            return [SearchItem(**_members(one)) for one in found.items]
        case ListNamespacesOp():
            return [tuple(one.labels) for one in found.namespaces]
        case _:
            return None


def _members(found: items_pb2.FoundItem) -> dict[str, Any]:
    return {
        "namespace": tuple(found.namespace),
        "key": found.key,
        "value": json.loads(found.value),
        "created_at": datetime.fromtimestamp(found.created_at_ms / 1000, UTC),
        "updated_at": datetime.fromtimestamp(found.updated_at_ms / 1000, UTC),
    }
