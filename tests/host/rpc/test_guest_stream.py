"""A guest's socket lets in the one guest that it is for, and ends the stream of one that lies."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from agentvisor.core.errors import PermissionRefused
from agentvisor.guest.host_stream import OPTIONS as GUEST_OPTIONS
from agentvisor.host.rpc import guest_stream
from agentvisor.host.rpc.guest_stream import GuestStream, served
from agentvisor.protocol.v1.guest_pb2 import FromGuest, GuestHeartbeat, Hello, StartAgent, ToGuest
from agentvisor.protocol.v1.guest_pb2_grpc import GuestHostStub

TOKEN = b"t" * 32
HELLO = FromGuest(hello=Hello(guest_id="g", token=TOKEN))


class Ends:
    """A guest's stream, from both sides."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.received: asyncio.Queue[FromGuest] = asyncio.Queue()
        self.stream = GuestStream("g", TOKEN, self.receive)

    async def receive(self, message: FromGuest) -> None:
        if message.WhichOneof("kind") == "exited":
            raise PermissionRefused("a lie")
        await self.received.put(message)


@pytest.fixture
async def ends(tmp_path: Path) -> AsyncIterator[Ends]:
    ends = Ends(f"unix:{tmp_path}/host.sock")
    async with served(ends.address, ends.stream):
        yield ends


@pytest.fixture
async def call(ends: Ends) -> AsyncIterator[Any]:
    async with grpc.aio.insecure_channel(ends.address, GUEST_OPTIONS) as channel:
        yield GuestHostStub(channel).Connect()


async def refused(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError):
        await asyncio.wait_for(call.read(), 5)
    return await call.code()


async def test_a_guest_with_its_token_talks_both_ways(ends: Ends, call: Any) -> None:
    await call.write(HELLO)
    await call.write(FromGuest(heartbeat=GuestHeartbeat(agents=1)))
    assert (await ends.received.get()).heartbeat.agents == 1
    ends.stream.send(ToGuest(start=StartAgent(ticket="x")))
    assert (await call.read()).start.ticket == "x"
    await call.done_writing()
    await asyncio.wait_for(ends.stream.ended.wait(), 5)


@pytest.mark.parametrize(
    "first",
    [
        FromGuest(hello=Hello(guest_id="g", token=b"x" * 32)),
        FromGuest(hello=Hello(guest_id="g")),
        FromGuest(heartbeat=GuestHeartbeat()),
        FromGuest(),
    ],
    ids=["wrong token", "no token", "no hello", "nothing"],
)
async def test_a_stranger_is_not_let_in(ends: Ends, call: Any, first: FromGuest) -> None:
    await call.write(first)
    assert await refused(call) == grpc.StatusCode.UNAUTHENTICATED
    assert not ends.stream.connected.is_set()
    assert not ends.stream.ended.is_set()


async def test_one_that_says_nothing_is_not_kept(ends: Ends, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_stream, "HELLO_SECONDS", 0.1)
    assert await refused(call) == grpc.StatusCode.UNAUTHENTICATED


async def test_the_token_opens_the_socket_once(ends: Ends, call: Any) -> None:
    await call.write(HELLO)
    await asyncio.wait_for(ends.stream.connected.wait(), 5)
    async with grpc.aio.insecure_channel(ends.address, GUEST_OPTIONS) as channel:
        second = GuestHostStub(channel).Connect()
        await second.write(HELLO)
        assert await refused(second) == grpc.StatusCode.UNAUTHENTICATED
    await call.write(FromGuest(heartbeat=GuestHeartbeat(agents=2)))
    assert (await ends.received.get()).heartbeat.agents == 2


async def test_a_guest_that_lies_loses_its_stream(ends: Ends, call: Any) -> None:
    await call.write(HELLO)
    lie = FromGuest()
    lie.exited.ticket = "another's"
    await call.write(lie)
    assert await refused(call) == grpc.StatusCode.PERMISSION_DENIED
    await asyncio.wait_for(ends.stream.ended.wait(), 5)


async def test_a_compressed_message_is_not_unpacked(ends: Ends) -> None:
    async with grpc.aio.insecure_channel(ends.address, GUEST_OPTIONS, compression=grpc.Compression.Gzip) as channel:
        call = GuestHostStub(channel).Connect()

        async def say_hello() -> None:
            await call.write(FromGuest(hello=Hello(guest_id="g" * 10_000, token=TOKEN)))
            await call.read()

        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await say_hello()
        # The refusal, or the write that met it: which of the two the client sees first is a matter of luck.
        assert refusal.value.code() in {grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INTERNAL}
        assert not ends.stream.connected.is_set()
