"""Store items from this process: one request for all operations of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from agentvisor.client.operations import Operation
from agentvisor.protocol.v1 import items_pb2, store_pb2


def carry_out_items(operations: Sequence[items_pb2.ItemOperation]) -> Operation[list[items_pb2.ItemResult]]:
    """The results, in the operations' order, once everything that is written is durable."""
    reply = yield store_pb2.StoreRequest(items=items_pb2.ItemsRequest(operations=operations))
    return list(reply.items.results)
