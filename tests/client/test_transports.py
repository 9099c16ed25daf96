"""What every way to a host does: one contract, both transports."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from tests.client.hosts import way, way_to

from agentvisor.client.operations import Operation, begin
from agentvisor.core.errors import Conflict, Unavailable
from agentvisor.protocol.errors import to_error
from agentvisor.protocol.v1.store_pb2 import GetCheckpoint, PutCheckpoint, StoreReply, StoreRequest, TaskWrites

__all__ = ["way"]


def get(namespace: str) -> StoreRequest:
    return StoreRequest(thread_id="t", get=GetCheckpoint(namespace=namespace))


def echo(_: str | None, request: StoreRequest) -> StoreReply:
    """Answers with the request's namespace."""
    reply = StoreReply()
    reply.found.tuple.checkpoint.namespace = request.get.namespace
    return reply


def test_six_threads_at_once_each_get_their_own_replies(way: str) -> None:
    with way_to(echo, way) as transport, ThreadPoolExecutor(6) as pool:

        def ask(thread: int) -> list[str]:
            futures = [transport.submit(get(f"{thread}.{number}")) for number in range(20)]
            return [future.result().found.tuple.checkpoint.namespace for future in futures]

        assert list(pool.map(ask, range(6))) == [[f"{thread}.{number}" for number in range(20)] for thread in range(6)]


def test_a_large_message_passes_both_ways(way: str) -> None:
    with way_to(echo, way) as transport:
        large = "x" * 3_000_000
        assert transport.submit(get(large)).result().found.tuple.checkpoint.namespace == large


def test_a_refusal_is_a_reply(way: str) -> None:
    def refuse(_: str | None, __: StoreRequest) -> StoreReply:
        return StoreReply(error=to_error(Conflict("busy", run_id="r")))

    with way_to(refuse, way) as transport:
        reply = transport.submit(get("")).result()
        assert (reply.error.code, dict(reply.error.details)) == ("conflict", {"run_id": "r"})


def test_what_is_not_answered_when_the_connection_is_closed_fails(way: str) -> None:
    release, asked = threading.Event(), threading.Event()

    def stuck(_: str | None, __: StoreRequest) -> StoreReply:
        asked.set()
        release.wait()
        return StoreReply()

    with way_to(stuck, way) as transport:
        pending = transport.submit(get(""))
        assert asked.wait(10)
        closing = threading.Thread(target=transport.close)
        closing.start()
        with pytest.raises(Unavailable):
            pending.result(10)
        release.set()
        closing.join()
        with pytest.raises(Unavailable):
            transport.submit(get("")).result(10)


def test_a_waiter_that_is_cancelled_does_not_disturb_the_transport(way: str) -> None:
    release = threading.Event()

    def slow(thread_id: str | None, request: StoreRequest) -> StoreReply:
        release.wait()
        return echo(thread_id, request)

    async def run() -> str:
        call = begin(ask("first"), transport)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(call.wait(), 0.01)
        release.set()
        return await begin(ask("second"), transport).wait()

    with way_to(slow, way) as transport:
        assert asyncio.run(run()) == "second"


def test_an_operation_does_the_same_blocking_and_awaited(way: str) -> None:
    async def awaited() -> list[str]:
        return list(await asyncio.gather(*(begin(ask(str(number)), transport).wait() for number in range(20))))

    with way_to(echo, way) as transport:
        assert [begin(ask(str(number)), transport).result() for number in range(20)] == list(map(str, range(20)))
        assert asyncio.run(awaited()) == list(map(str, range(20)))


@pytest.mark.parametrize("is_async", [False, True])
def test_errors_of_the_host_are_raised_inside_the_operation(way: str, is_async: bool) -> None:  # noqa: FBT001
    def refuse_first(thread_id: str | None, request: StoreRequest) -> StoreReply:
        if request.get.namespace == "first":
            return StoreReply(error=to_error(Conflict("busy")))
        return echo(thread_id, request)

    def operation() -> Operation[str]:
        try:
            yield get("first")
        except Conflict as error:
            reply = yield get(f"after {error}")
            return reply.found.tuple.checkpoint.namespace
        return "not reached"

    with way_to(refuse_first, way) as transport:
        call = begin(operation(), transport)
        assert (asyncio.run(call.wait()) if is_async else call.result()) == "after busy"
        with pytest.raises(Conflict, match="busy"):
            begin(ask("first"), transport).result()


def test_a_checkpoint_arrives_after_the_writes_that_were_sent_before_it(way: str) -> None:
    arrived: list[str | None] = []
    lock = threading.Lock()

    def note(_: str | None, request: StoreRequest) -> StoreReply:
        with lock:
            arrived.append(request.WhichOneof("kind"))
        return StoreReply()

    with way_to(note, way) as transport:
        futures = [transport.submit(StoreRequest(thread_id="t", put_writes=TaskWrites())) for _ in range(20)]
        futures.append(transport.submit(StoreRequest(thread_id="t", put=PutCheckpoint())))
        wait(futures)
    assert arrived == ["put_writes"] * 20 + ["put"]


def ask(namespace: str) -> Operation[str]:
    reply = yield get(namespace)
    return reply.found.tuple.checkpoint.namespace
