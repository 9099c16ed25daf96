"""The checkpoint store for clients outside any guest, over gRPC: who may call, and with which ids."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

import grpc
import grpc.aio
import structlog

from agentvisor.core import ids
from agentvisor.core.errors import AgentVisorError, Internal, InvalidInput, Unavailable
from agentvisor.core.ids import ThreadId
from agentvisor.core.owners import Owner
from agentvisor.host.callers import Callers
from agentvisor.host.rpc.server_options import server_options
from agentvisor.protocol.errors import to_error
from agentvisor.protocol.frames import MAX_FRAME
from agentvisor.protocol.v1.guest_pb2_grpc import StoreHostServicer, add_StoreHostServicer_to_server
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.rpc")


class Door(Protocol):
    """Answers a request; without a thread only where the request is for all of them."""

    async def call(self, thread_id: ThreadId | None, request: StoreRequest) -> StoreReply: ...


DoorOf = Callable[[Owner], Door]
"""To each caller their own: other owners' threads do not exist there."""

_GRACE_SECONDS = 1.0

_OPTIONS = server_options(most_bytes=MAX_FRAME, most_streams=64)


class StoreService(StoreHostServicer):
    """Checks key and ids, then lets the caller's door answer; every error of ours is a reply, with its code."""

    def __init__(self, door_of: DoorOf, callers: Callers, stopping: Callable[[], bool] = lambda: False) -> None:
        self._door_of = door_of
        self._stopping = stopping
        self._callers = callers

    async def Call(  # pyright: ignore[reportIncompatibleMethodOverride] (the stub's sync and async servicers share it)
        self, request: StoreRequest, context: grpc.aio.ServicerContext[StoreRequest, StoreReply]
    ) -> StoreReply:
        """Answer one request; called by gRPC."""
        try:
            owner = await self._callers.owner_of(_shown(context), context.peer())
            reply = None if owner is None else await self._door_of(owner).call(_thread_of(request), request)
        except AgentVisorError as error:
            return StoreReply(error=to_error(error))
        except Exception:
            log.exception("store_call_failed", kind=request.WhichOneof("kind"), thread=request.thread_id)
            return StoreReply(error=to_error(Internal("the host failed to answer; its log has the traceback")))
        if reply is None:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "the key or token is missing, or does not count")
        if reply.error.code == Unavailable.code and self._stopping():
            # As a host that is gone already: the client looks for one that is not about to be.
            await context.abort(grpc.StatusCode.UNAVAILABLE, reply.error.message)
        return reply


def _shown(context: grpc.aio.ServicerContext[StoreRequest, StoreReply]) -> str | None:
    """The key or token: `Bearer KEY`, once."""
    shown = [value for key, value in context.invocation_metadata() or () if key == "authorization"]
    given = shown[0] if len(shown) == 1 else ""
    text = given if isinstance(given, str) else given.decode("latin-1")
    return text.removeprefix("Bearer ") if text.startswith("Bearer ") else None


def _thread_of(request: StoreRequest) -> ThreadId | None:
    if request.WhichOneof("kind") == "copy_thread":
        ids.thread_id(request.copy_thread.target_thread_id)
    if request.thread_id:
        return ids.thread_id(request.thread_id)
    if request.WhichOneof("kind") == "list" and request.list.all_threads:
        return None
    if request.WhichOneof("kind") == "items":
        return None  # of the store, which is no thread's
    if request.WhichOneof("kind") == "delete_for_runs":
        return None  # it is for whatever threads these runs have written to
    raise InvalidInput("name the thread: outside a run there is none of one's own", field="thread_id")


@asynccontextmanager
async def store_server(
    door_of: DoorOf, host: str, port: int, callers: Callers, stopping: Callable[[], bool] = lambda: False
) -> AsyncGenerator[str]:
    """Listen at host and port (0: any free one); yields the address that clients are to use, "host:port"."""
    server = grpc.aio.server(options=_OPTIONS)
    add_StoreHostServicer_to_server(StoreService(door_of, callers, stopping), server)
    name = f"[{host}]" if ":" in host else host
    try:
        bound = server.add_insecure_port(f"{name}:{port}")
    except RuntimeError as error:
        raise InvalidInput(
            f"gRPC cannot listen on {name}:{port}, it may be taken: {error}", field="grpc.port"
        ) from error
    await server.start()
    try:
        yield f"{name}:{bound}"
    finally:
        await server.stop(_GRACE_SECONDS)
