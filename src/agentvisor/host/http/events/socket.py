"""A WebSocket that follows a thread: commands in, their replies and the events of its subscriptions out.

A subscription is a reader of its own, from where its client is. What two of them would tell at once is told once.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

import structlog
from starlette.websockets import WebSocket, WebSocketDisconnect

from agentvisor.core.errors import AgentVisorError, InvalidInput
from agentvisor.core.ids import ThreadId
from agentvisor.host.http.events.commands import Asked, Malformed, answered, done, failed, parsed
from agentvisor.host.http.events.filters import Filter, filter_of
from agentvisor.host.http.events.follow import Follower
from agentvisor.host.http.events.told import Frame, Missed
from agentvisor.host.http.json import encode
from agentvisor.host.http.services import Services
from agentvisor.host.render_typed import Json

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.http")

MOST_SUBSCRIPTIONS = 100
"""Of one connection: each reads by itself."""

_REMEMBERED = 10_000
_PLACED = 1.0
"""Seconds that a client which takes up a subscription waits to be told whether it has missed something."""

Object = dict[str, Json]


@dataclass(slots=True)
class _Subscription:
    filter: Filter
    began: int
    """How many events had been sent before."""
    task: asyncio.Task[None] | None = None


class Socket:
    """Of one connection."""

    def __init__(self, services: Services, thread_id: ThreadId, websocket: WebSocket) -> None:
        self._services = services
        self._thread_id = thread_id
        self._websocket = websocket
        self._subscriptions: dict[str, _Subscription] = {}
        self._sent: OrderedDict[str, int] = OrderedDict()
        self._count = 0
        self._last_seq = 0
        self._turn = asyncio.Lock()
        self._over = asyncio.Event()

    async def run(self) -> None:
        """Answer until either side closes."""
        reading = asyncio.create_task(self._read())
        over = asyncio.create_task(self._until_over())
        try:
            await asyncio.wait([reading, over], return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                with suppress(RuntimeError):
                    await self._websocket.close(1011, "the thread's events have ended")
            else:
                reading.result()
        except (WebSocketDisconnect, OSError):
            pass
        finally:
            tasks = [reading, over, *(one.task for one in self._subscriptions.values() if one.task is not None)]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _until_over(self) -> None:
        await self._over.wait()

    async def _read(self) -> None:
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            given: str | bytes = message.get("text") or message.get("bytes") or ""
            try:
                command = parsed(given)
            except Malformed as error:
                await self._send(error.reply)
                continue
            await self._answer(command)

    async def _answer(self, command: Asked) -> None:
        match command.method:
            case "subscription.subscribe":
                await self._subscribe(command)
            case "subscription.reconnect":
                await self._reconnect(command)
            case "subscription.unsubscribe":
                await self._unsubscribe(command)
            case _:
                try:
                    reply = await answered(self._services, self._thread_id, command, self._last_seq)
                except AgentVisorError as error:
                    reply = failed(command.id, "unknown_error", error.message)
                await self._send(reply)

    # --- subscriptions ----------------------------------------------------------------------------------------------

    async def _subscribe(self, command: Asked) -> None:
        try:
            wanted = filter_of(command.params)
            named = self._name(None)
        except InvalidInput as error:
            await self._send(failed(command.id, "invalid_argument", error.message))
            return
        await self._send(done(command, {"subscription_id": named}, self._last_seq))
        self._begin(named, wanted, Follower(self._services, self._thread_id, wanted.since))

    async def _reconnect(self, command: Asked) -> None:
        try:
            wanted = filter_of(command.params, also=("subscription_id",))
            if wanted.since is None:
                raise InvalidInput("subscription.reconnect requires a non-negative integer since.", field="since")
            named = self._name(command.params.get("subscription_id"))
        except InvalidInput as error:
            await self._send(failed(command.id, "invalid_argument", error.message))
            return
        follower = Follower(self._services, self._thread_id, wanted.since)
        # The reply comes before the events, and says whether some are missing.
        held = asyncio.Event()
        self._begin(named, wanted, follower, held)
        await asyncio.wait([follower.placed], timeout=_PLACED)
        missed = follower.placed.result() if follower.placed.done() else None
        if missed is not None:
            await self._end(named)
            meta: Object = {"applied_through_seq": self._last_seq}
            await self._send({"type": "error", "id": command.id, **missed.fields(), "meta": meta})
            return
        await self._send(done(command, {"subscription_id": named}, self._last_seq))
        held.set()

    async def _unsubscribe(self, command: Asked) -> None:
        named = command.params.get("subscription_id")
        if not isinstance(named, str):
            text = "subscription.unsubscribe requires a subscription_id."
            await self._send(failed(command.id, "invalid_argument", text))
            return
        if named not in self._subscriptions:
            await self._send(failed(command.id, "no_such_subscription", f"Unknown subscription: {named[:80]}"))
            return
        await self._end(named)
        await self._send(done(command, {}, self._last_seq))

    def _name(self, wanted: Json) -> str:
        if len(self._subscriptions) >= MOST_SUBSCRIPTIONS:
            raise InvalidInput(f"this connection has {MOST_SUBSCRIPTIONS} subscriptions: end one, or open another")
        if wanted is None:
            return str(uuid4())
        if not isinstance(wanted, str) or not wanted or len(wanted) > 255 or wanted in self._subscriptions:
            raise InvalidInput("subscription_id must be a text that no subscription has", field="subscription_id")
        return wanted

    def _begin(self, named: str, wanted: Filter, follower: Follower, held: asyncio.Event | None = None) -> None:
        subscription = self._subscriptions[named] = _Subscription(wanted, self._count)
        feeding = self._feed(subscription, follower, held)
        subscription.task = asyncio.create_task(feeding, name=f"subscription {named}")

    async def _end(self, named: str) -> None:
        task = self._subscriptions.pop(named).task
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _feed(self, subscription: _Subscription, follower: Follower, held: asyncio.Event | None) -> None:
        frames = follower.frames()
        try:
            async for frame in frames:
                if held is not None:
                    await held.wait()
                if isinstance(frame, Missed):
                    await self._send(frame.json())
                elif subscription.filter.takes(frame.told):
                    await self._tell(subscription, frame)
        except (WebSocketDisconnect, RuntimeError, OSError):
            return  # the client is gone, which the reading side sees too
        except AgentVisorError as error:
            with suppress(WebSocketDisconnect, RuntimeError, OSError):
                await self._send(failed(None, "unknown_error", error.message))
        except Exception:
            log.exception("subscription_failed", thread=self._thread_id)
        finally:
            await frames.aclose()
        self._over.set()

    async def _tell(self, subscription: _Subscription, frame: Frame) -> None:
        if self._sent.get(frame.event_id, -1) >= subscription.began:
            return  # another subscription has told it since this one began
        self._sent[frame.event_id] = self._count
        self._sent.move_to_end(frame.event_id)
        self._count += 1
        if len(self._sent) > _REMEMBERED:
            self._sent.popitem(last=False)
        await self._send(frame.json())
        self._last_seq = max(self._last_seq, frame.seq)

    async def _send(self, message: Object) -> None:
        async with self._turn:
            await self._websocket.send_text(encode(message).decode())
