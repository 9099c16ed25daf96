"""Carries out work that mixes requests to the host with calls of a user's functions: blocking, or awaiting.

The work is a generator, so that it stands in one place for both. Where a function that was called without waiting gives
something to be awaited, the rest of the work becomes a coroutine.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import cast

from agentvisor.client.live_effects import Live, Name
from agentvisor.client.transport import Transport
from agentvisor.protocol.errors import from_error
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest


@dataclass(frozen=True, slots=True)
class Invoke:
    """Call a function, inside of `around`; what it returns is awaited where it can be."""

    function: Callable[[], object]
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    before_awaiting: StoreRequest | None = None
    """Told to the host where the function, which did not look like it, gives something to be awaited."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for another call."""

    other: Live
    name: Name


Step = StoreRequest | Invoke | Wait
Steps = Generator[Step, object, object]


def is_async(function: Callable[[], object]) -> bool:
    """Whether calling it gives a coroutine: a coroutine function, a partial of one, an object that is called so."""
    while isinstance(function, partial):
        function = cast("partial[object]", function).func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 (its kind is asked for)


def carry_out(steps: Steps, transport: Transport) -> object:
    """Block until the work is done; its result. A coroutine for the rest of it once something must be awaited."""
    try:
        step = next(steps)
        while True:
            try:
                match step:
                    case StoreRequest():
                        said: object = _told(transport.submit(step).result())
                    case Wait(other, name):
                        said = other.wait(name)
                    case Invoke():
                        with step.around():
                            said = step.function()
                        if inspect.isawaitable(said):
                            return _carry_on(steps, transport, step, said)
            except BaseException as error:  # noqa: BLE001 (the work decides)
                step = steps.throw(error)
            else:
                step = steps.send(said)
    except StopIteration as stop:
        return cast("object", stop.value)


async def _carry_on(steps: Steps, transport: Transport, step: Invoke, begun: Awaitable[object]) -> object:
    async def rest() -> object:
        if step.before_awaiting is not None:
            _told(await asyncio.wrap_future(transport.submit(step.before_awaiting)))
        return await begun

    return await _carry_out(steps, transport, Invoke(rest, step.around))


async def acarry_out(steps: Steps, transport: Transport) -> object:
    """Await the work; its result."""
    return await _carry_out(steps, transport, next(steps))


async def _carry_out(steps: Steps, transport: Transport, step: Step) -> object:
    try:
        while True:
            try:
                said = await _done(step, transport)
            except BaseException as error:  # noqa: BLE001 (the work decides)
                step = steps.throw(error)
            else:
                step = steps.send(said)
    except StopIteration as stop:
        return cast("object", stop.value)


async def _done(step: Step, transport: Transport) -> object:
    match step:
        case StoreRequest():
            return _told(await asyncio.wrap_future(transport.submit(step)))
        case Wait(other):
            return await asyncio.shield(asyncio.wrap_future(other.ended))
        case Invoke():
            with step.around():
                said = step.function()
                return await said if inspect.isawaitable(said) else said


def _told(reply: StoreReply) -> StoreReply:
    if reply.HasField("error"):
        raise from_error(reply.error)
    return reply
