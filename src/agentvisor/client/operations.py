"""Operations without I/O, and the two ways to carry one out: blocking a thread, or awaiting.

An operation is a generator that yields requests and is sent their replies; errors of the host and of the way there are
raised inside it. What it does stands in one place, for synchronous and asynchronous callers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Generic, TypeVar

from agentvisor.client.transport import Transport
from agentvisor.core.errors import AgentVisorError
from agentvisor.protocol.errors import from_error
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

T = TypeVar("T")

Operation = Generator[StoreRequest, StoreReply, T]


class Call(Generic[T]):
    """An operation under way: begun by `begin`, to be finished by exactly one of `result` and `wait`."""

    def __init__(self, operation: Operation[T], transport: Transport, pending: Future[StoreReply]) -> None:
        self._operation = operation
        self._transport = transport
        self._pending = pending

    def result(self) -> T:
        """Block until the operation has ended."""
        try:
            while True:
                try:
                    reply = self._pending.result()
                except AgentVisorError as error:
                    request = self._operation.throw(error)
                else:
                    request = self._advance(reply)
                self._pending = self._transport.submit(request)
        except StopIteration as stop:
            return _value(stop)

    async def wait(self) -> T:
        """Await the operation's end. Cancelling stops waiting; the request that is on its way may still take effect."""
        try:
            while True:
                try:
                    reply = await asyncio.wrap_future(self._pending)
                except AgentVisorError as error:
                    request = self._operation.throw(error)
                else:
                    request = self._advance(reply)
                self._pending = self._transport.submit(request)
        except StopIteration as stop:
            return _value(stop)

    def _advance(self, reply: StoreReply) -> StoreRequest:
        if reply.HasField("error"):
            return self._operation.throw(from_error(reply.error))
        return self._operation.send(reply)


def begin(operation: Operation[T], transport: Transport, *, before_submit: Callable[[], None] | None = None) -> Call[T]:
    """Run an operation, in the caller's thread, until its first request is on its way."""
    request = next(operation)
    if before_submit is not None:
        before_submit()
    return Call(operation, transport, transport.submit(request))


def carry_out(operation: Operation[T], transport: Transport) -> T:
    """Block until an operation has ended that may have nothing to ask."""
    try:
        request = next(operation)
    except StopIteration as stop:
        return _value(stop)
    return Call(operation, transport, transport.submit(request)).result()


def _value(stop: StopIteration) -> T:  # pyright: ignore[reportInvalidTypeVarUse]
    return stop.value
