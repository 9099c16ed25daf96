"""LangGraph's store on AgentVisor: items that agents keep beside their threads, by namespace and key."""

from __future__ import annotations

from collections.abc import Iterable

from langgraph.store.base import BaseStore, Op, Result
from typing_extensions import override

from agentvisor._langgraph.items import message_of, result_of
from agentvisor.client.connection import Connection, connect
from agentvisor.client.items import carry_out_items
from agentvisor.client.operations import Call, begin
from agentvisor.client.transport import Transport
from agentvisor.protocol.v1 import items_pb2


class AgentVisorStore(BaseStore):
    """Keeps items in AgentVisor, durably, for all runs of one owner; `/store/items` shows the same items.

    Inside a run it needs no argument, and graphs have it without asking. Outside, it talks to a running host at
    `endpoint` (`AGENTVISOR_ENDPOINT`) with `api_key` (`AGENTVISOR_API_KEY`). Every method has its asynchronous twin.
    Values are JSON objects. A batch reads first and then writes; what it writes into one namespace is written together,
    or not at all. Nothing is indexed by meaning: `index` and `query` have no effect. `ttl` is in minutes.

    Raises `InvalidInput`, `ValueTooLarge` and `StateTooLarge` before anything is stored, `Unavailable` where no host
    answers.
    """

    supports_ttl = True

    __slots__ = ("_api_key", "_endpoint", "_given")

    def __init__(
        self, *, endpoint: str | None = None, api_key: str | None = None, transport: Transport | None = None
    ) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._api_key = api_key
        self._given = None if transport is None else Connection.over(transport)

    @override
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations together; their results in order."""
        operations = list(ops)
        return _results(operations, self._begin(operations).result()) if operations else []

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch`, awaited."""
        operations = list(ops)
        return _results(operations, await self._begin(operations).wait()) if operations else []

    def _begin(self, operations: list[Op]) -> Call[list[items_pb2.ItemResult]]:
        connection = self._given or connect(self._endpoint, self._api_key)
        return begin(carry_out_items([message_of(one) for one in operations]), connection.transport)


def _results(operations: list[Op], found: list[items_pb2.ItemResult]) -> list[Result]:
    return [result_of(operation, one) for operation, one in zip(operations, found, strict=True)]
