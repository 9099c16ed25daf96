"""Whoever saves and keeps state through a host in the test's own process: an agent, or a client outside."""

from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar

from tests.support.agents import Guided
from tests.support.host import EngineHost
from tests.support.operations import carried_out

from agentvisor.client import saves
from agentvisor.client.connection import Connection
from agentvisor.client.known import Known
from agentvisor.client.state import Place, State
from agentvisor.client.strict_json import dump
from agentvisor.core.ids import ThreadId
from agentvisor.core.thread import Thread
from agentvisor.protocol.blobs import Limits
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

T = TypeVar("T")
NOWHERE: Any = None


class Writer(NamedTuple):
    """An agent, or a client outside, with what its process knows."""

    host: EngineHost
    thread_id: ThreadId
    guided: Guided | None
    known: Known
    limits: Limits = Limits()

    async def call(self, request: StoreRequest) -> StoreReply:
        self.sent.append(request)
        if self.guided is not None:
            return await self.guided.now.call(request)
        request.thread_id = self.thread_id
        return await self.host.call(self.thread_id, request)

    @property
    def sent(self) -> list[StoreRequest]:
        return _SENT.setdefault(id(self.known), [])

    async def do(self, operation: Generator[StoreRequest, StoreReply, T]) -> T:
        return await carried_out(operation, self.call)

    @property
    def state(self) -> State:
        return State(Connection(NOWHERE, self.limits, self.known), resends=self.guided is None)

    def at(self, key: str) -> Place:
        return Place("" if self.guided is not None else self.thread_id, "", key)

    async def save(self, key: str, value: object) -> str:
        where = self.at("").thread
        return await self.do(saves.save(where, key, dump(value, "state"), "r", known=self.known, limits=self.limits))

    async def load(self, wanted: str = "") -> object:
        return await self.do(saves.load(self.at("").thread, wanted, None, self.known))

    async def append(self, key: str, item: object) -> int:
        return await self.do(self.state.append(self.at(key), dump(item, "item"), None))

    async def set(self, key: str, value: object, expected: int | None = None) -> int:
        return await self.do(self.state.set(self.at(key), dump(value, "value"), expected))

    async def get(self, key: str) -> object:
        found = await self.do(self.state.entry(self.at(key)))
        return None if found is None else found.value

    async def thread(self) -> Thread:
        return await self.host.threads.state(self.thread_id)


_SENT: dict[int, list[StoreRequest]] = {}
