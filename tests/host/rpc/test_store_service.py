"""The door for clients outside a guest: the key, the ids, the size; and every error arrives as itself."""

import logging
from collections.abc import AsyncGenerator
from typing import Self

import grpc
import grpc.aio
import pytest
from tests.support.store_kinds import KINDS, of_kind

from agentvisor.core.errors import Conflict, InvalidInput, Unavailable
from agentvisor.core.ids import ThreadId
from agentvisor.core.owners import EVERYONE, Owner
from agentvisor.host.api_keys import hash_of
from agentvisor.host.callers import Callers
from agentvisor.host.config_auth import ApiKeyConfig
from agentvisor.host.config_http import HttpConfig
from agentvisor.host.rpc.store_service import store_server
from agentvisor.protocol.errors import to_error
from agentvisor.protocol.v1.guest_pb2_grpc import StoreHostStub
from agentvisor.protocol.v1.store_pb2 import (
    CopyThread,
    GetCheckpoint,
    ListCheckpoints,
    PutCheckpoint,
    StoreReply,
    StoreRequest,
)

GET = StoreRequest(thread_id="t", get=GetCheckpoint())


def keys(operator: str | None = None, **owners: str) -> Callers:
    """Those of an operator, and of owners by their names."""
    listed = [ApiKeyConfig(name=name, owner=name, hash=hash_of(key)) for name, key in owners.items()]
    return Callers(HttpConfig(operator_key=operator, api_keys=listed))  # type: ignore[arg-type]


class Handler:
    """Notes what reaches it."""

    def __init__(self) -> None:
        self.called: list[ThreadId | None] = []
        self.owners: list[Owner] = []
        self.error: Exception | None = None
        self.reply = StoreReply()

    def of(self, owner: Owner) -> Self:
        self.owners.append(owner)
        return self

    async def call(self, thread_id: ThreadId | None, request: StoreRequest) -> StoreReply:
        self.called.append(thread_id)
        if self.error is not None:
            raise self.error
        return self.reply


@pytest.fixture
def handler() -> Handler:
    return Handler()


@pytest.fixture
async def stub(handler: Handler) -> AsyncGenerator[StoreHostStub]:
    async with (
        store_server(handler.of, "127.0.0.1", 0, keys()) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        yield StoreHostStub(channel)


async def test_a_request_reaches_the_handler_with_its_thread(handler: Handler, stub: StoreHostStub) -> None:
    await stub.Call(GET)
    await stub.Call(StoreRequest(list=ListCheckpoints(all_threads=True)))
    assert handler.called == ["t", None]


@pytest.mark.parametrize(
    "request_",
    [
        StoreRequest(get=GetCheckpoint()),
        StoreRequest(),
        StoreRequest(list=ListCheckpoints()),
        StoreRequest(thread_id="a b", get=GetCheckpoint()),
        StoreRequest(thread_id="\x00", get=GetCheckpoint()),
        StoreRequest(thread_id="x" * 256, get=GetCheckpoint()),
        StoreRequest(thread_id="t", copy_thread=CopyThread(target_thread_id="../other")),
        StoreRequest(thread_id="t", copy_thread=CopyThread()),
    ],
)
async def test_an_id_that_is_none_is_refused_at_the_door(
    handler: Handler, stub: StoreHostStub, request_: StoreRequest
) -> None:
    assert (await stub.Call(request_)).error.code == InvalidInput.code
    assert handler.called == []


@pytest.mark.parametrize("kind", sorted(KINDS))
async def test_an_id_that_is_none_is_refused_with_every_kind_of_request(
    handler: Handler, stub: StoreHostStub, kind: str
) -> None:
    for thread_id in ("a b", "\x00", "../other", "x" * 256):
        assert (await stub.Call(of_kind(kind, thread_id))).error.code == InvalidInput.code
    assert handler.called == []


async def test_a_host_that_stops_refuses_as_one_that_is_gone_so_that_the_client_looks_for_another(
    handler: Handler,
) -> None:
    stopping: list[bool] = []
    async with (
        store_server(handler.of, "127.0.0.1", 0, keys(), lambda: bool(stopping)) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub = StoreHostStub(channel)
        handler.reply = StoreReply(error=to_error(Unavailable("not now")))
        assert (await stub.Call(GET)).error.code == Unavailable.code
        stopping.append(True)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Call(GET)
        assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.UNAVAILABLE, "not now")
        # What it can still answer, it answers.
        handler.reply = StoreReply()
        await stub.Call(GET)


async def test_our_errors_arrive_as_themselves(handler: Handler, stub: StoreHostStub) -> None:
    handler.error = Conflict("the thread is busy", run_id="r")
    reply = await stub.Call(GET)
    assert (reply.error.code, reply.error.message, dict(reply.error.details)) == (
        "conflict",
        "the thread is busy",
        {"run_id": "r"},
    )


async def test_a_defect_is_logged_and_says_nothing_of_itself(
    handler: Handler, stub: StoreHostStub, caplog: pytest.LogCaptureFixture
) -> None:
    handler.error = RuntimeError("a secret")
    with caplog.at_level(logging.ERROR):
        reply = await stub.Call(GET)
    assert reply.error.code == "internal"
    assert "secret" not in reply.error.message


@pytest.mark.parametrize(
    "shown",
    [
        [],
        ["right"],
        ["Bearer wrong"],
        ["Bearer righ"],
        ["Bearer right "],
        ["bearer right"],
        ["Bearer right", "Bearer right"],
        ["Bearer wrong", "Bearer right"],
        ["Bearer "],
    ],
)
async def test_without_the_key_no_kind_of_request_is_answered(handler: Handler, shown: list[str]) -> None:
    async with (
        store_server(handler.of, "127.0.0.1", 0, keys("right")) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub = StoreHostStub(channel)
        for kind in sorted(KINDS):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Call(of_kind(kind, "t"), metadata=[("authorization", value) for value in shown])
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert handler.called == []
        await stub.Call(GET, metadata=[("authorization", "Bearer right")])
        assert handler.called == ["t"]


async def test_the_key_tells_whose_threads_there_are(handler: Handler) -> None:
    async with (
        store_server(handler.of, "127.0.0.1", 0, keys("operator", anna="annas", bert="berts")) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        for key in ("annas", "operator", "berts"):
            await StoreHostStub(channel).Call(GET, metadata=[("authorization", f"Bearer {key}")])
    assert handler.owners == ["anna", EVERYONE, "bert"]


async def test_a_message_over_the_limit_and_a_compressed_one_are_refused_and_the_server_lives(
    handler: Handler, stub: StoreHostStub
) -> None:
    large = StoreRequest(thread_id="t", put=PutCheckpoint())
    large.put.checkpoint.record = bytes(9 * 1024 * 1024)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Call(large)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Call(GET, compression=grpc.Compression.Gzip)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert handler.called == []
    await stub.Call(GET)
    assert handler.called == ["t"]


async def test_a_port_that_is_taken_is_a_clear_error(handler: Handler) -> None:
    async with store_server(handler.of, "127.0.0.1", 0, keys()) as address:
        port = int(address.rpartition(":")[2])
        with pytest.raises(InvalidInput, match=str(port)):
            async with store_server(handler.of, "127.0.0.1", port, keys()):
                pass
