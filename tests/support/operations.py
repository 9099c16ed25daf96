"""Carries out the SDK's operations through a host in the test's own process."""

from collections.abc import Awaitable, Callable, Generator
from typing import TypeVar

from agentvisor.core.errors import AgentVisorError
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

T = TypeVar("T")


async def carried_out(
    operation: Generator[StoreRequest, StoreReply, T], call: Callable[[StoreRequest], Awaitable[StoreReply]]
) -> T:
    """The operation's result; `call` raises what the host refuses."""
    try:
        request = next(operation)
        while True:
            try:
                reply = await call(request)
            except AgentVisorError as error:
                request = operation.throw(error)
            else:
                request = operation.send(reply)
    except StopIteration as stop:
        result: T = stop.value
        return result
