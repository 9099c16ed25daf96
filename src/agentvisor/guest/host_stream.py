"""The supervisor's gRPC stream to the host."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

import grpc
import grpc.aio

from agentvisor.protocol.frames import MAX_FRAME
from agentvisor.protocol.v1.guest_pb2 import FromGuest, ToGuest
from agentvisor.protocol.v1.guest_pb2_grpc import GuestHostStub

CONNECT_SECONDS = 10.0

OPTIONS = [
    # A frame of an agent, and what is wrapped around it.
    ("grpc.max_receive_message_length", MAX_FRAME + 65536),
    ("grpc.max_send_message_length", MAX_FRAME + 65536),
    # A host that is frozen for seconds finds its guests alive when it goes on: what it may still write is decided by
    # Temporal, not here. (`keepalive_timeout_ms` does nothing in these releases; `ping_timeout_ms` does.)
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
]


class HostStream:
    """One bidirectional stream; its loss is the end of the guest, so it is never opened again."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.aio.insecure_channel(address, OPTIONS)
        self._call = GuestHostStub(self._channel).Connect()

    async def __aenter__(self) -> Self:
        await asyncio.wait_for(self._channel.channel_ready(), CONNECT_SECONDS)
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._call.cancel()
        await self._channel.close()

    async def write(self, message: FromGuest) -> None:
        """Send one message; waits while the host does not read."""
        await self._call.write(message)

    async def read(self) -> ToGuest | None:
        """Wait for the next message; None once the stream has ended, however it ended."""
        try:
            message = await self._call.read()
        except grpc.aio.AioRpcError:
            return None
        return message if isinstance(message, ToGuest) else None
