"""The host's end of one guest's stream: a gRPC server on a unix socket that only that guest is given."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import structlog

from agentvisor.core.errors import AgentVisorError
from agentvisor.host.rpc.server_options import server_options
from agentvisor.protocol.frames import MAX_FRAME
from agentvisor.protocol.v1.guest_pb2 import FromGuest, Hello, ToGuest
from agentvisor.protocol.v1.guest_pb2_grpc import GuestHostServicer, add_GuestHostServicer_to_server

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.guest")

HELLO_SECONDS = 5.0

# A frame of an agent, and what is wrapped around it.
OPTIONS = server_options(most_bytes=MAX_FRAME + 65536, most_streams=4)

Receive = Callable[[FromGuest], Awaitable[None]]


class GuestStream(GuestHostServicer):
    """Lets one guest in, by its token, once; then carries messages both ways until either side ends it."""

    def __init__(self, guest_id: str, token: bytes, receive: Receive) -> None:
        self._guest_id = guest_id
        self._token = token
        self._receive = receive
        self._outbox: asyncio.Queue[ToGuest] = asyncio.Queue()
        self.connected = asyncio.Event()
        self.ended = asyncio.Event()
        self.waiting_for_guest = False
        """Whether the next move is the guest's: while the host itself is busy, silence says nothing about the guest."""

    def send(self, message: ToGuest) -> None:
        """Queue a message. Answers are bounded by the calls that a guest may have open."""
        self._outbox.put_nowait(message)

    async def Connect(  # pyright: ignore[reportIncompatibleMethodOverride] (the stub's sync and async servicers share it)
        self,
        request_iterator: AsyncIterator[FromGuest],
        context: grpc.aio.ServicerContext[FromGuest, ToGuest],
    ) -> None:
        """Serve the guest; called by gRPC."""
        del request_iterator
        await self._let_in(context)
        writing = asyncio.create_task(self._write(context))
        try:
            while True:
                self.waiting_for_guest = True
                message = await context.read()
                self.waiting_for_guest = False
                if not isinstance(message, FromGuest):  # pyright: ignore[reportUnnecessaryIsInstance]
                    # grpc.aio.EOF, which the stubs do not have.
                    return
                await self._receive(message)
        except AgentVisorError as error:
            log.warning("guest_refused", guest=self._guest_id, code=error.code, reason=error.message)
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, error.message)
        finally:
            writing.cancel()
            self.ended.set()

    async def _let_in(self, context: grpc.aio.ServicerContext[FromGuest, ToGuest]) -> None:
        hello = Hello()
        with contextlib.suppress(TimeoutError):
            first = await asyncio.wait_for(context.read(), HELLO_SECONDS)
            if isinstance(first, FromGuest) and first.HasField("hello"):  # pyright: ignore[reportUnnecessaryIsInstance]
                hello = first.hello
        # One answer for every reason: who has not the token learns nothing.
        if not hmac.compare_digest(hello.token, self._token) or self.connected.is_set():
            log.warning("guest_stranger", guest=self._guest_id)
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "this is not the guest that this socket is for")
        self.connected.set()

    async def _write(self, context: grpc.aio.ServicerContext[FromGuest, ToGuest]) -> None:
        while True:
            await context.write(await self._outbox.get())


@asynccontextmanager
async def served(address: str, stream: GuestStream) -> AsyncGenerator[None]:
    """Listen at "unix:/path" for one guest."""
    server = grpc.aio.server(options=OPTIONS)
    add_GuestHostServicer_to_server(stream, server)
    server.add_insecure_port(address)
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)
