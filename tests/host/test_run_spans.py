"""A step of a thread's workflow may be taken twice: the spans of what ended in it are the same ones (decision 0020)."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager

import pytest
from tests.core.build import spec, thread
from tests.support.collector import Collector, Spanned, collecting

from agentvisor.core.runs import Ending
from agentvisor.core.thread import Close, End
from agentvisor.host.tracing.otel import Otel
from agentvisor.host.tracing.place import Place
from agentvisor.host.tracing.run_spans import RunSpans
from agentvisor.protocol.threads import spec_from_message
from agentvisor.protocol.v1 import run_pb2

ASKED = Place("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", sampled=True)
BEGAN_MS = 1_700_000_000_000


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Generator[Collector]:
    with collecting() as one:
        for name, value in one.environment.items():
            monkeypatch.setenv(name, value)
        yield one


@asynccontextmanager
async def host(name: str) -> AsyncGenerator[RunSpans]:
    """What a host makes spans with; at the end they have been sent."""
    tracing = Otel(version="1", host_id=name, service_name=None)
    try:
        yield RunSpans(tracing, {}, name)
        await asyncio.sleep(0)  # it tells in the loop's next turn
    finally:
        await tracing.close()


def ends(at_ms: int) -> list[End]:
    """Of an attempt and its run, as the step decides that is taken at this time."""
    one = thread()
    asked = run_pb2.RunSpec.FromString(spec().body)
    asked.traceparent = ASKED.traceparent
    run = one.accept_run(spec_from_message(asked), BEGAN_MS)
    one.begin_attempt(run, BEGAN_MS + 1_000)
    one.close_attempt(Close(Ending.COMPLETED), at_ms)
    return one.ends


def spans(collector: Collector, name: str) -> list[Spanned]:
    return collector.named(ASKED.trace_id, name)


async def test_two_hosts_that_take_one_step_tell_of_the_same_spans(collector: Collector) -> None:
    first, second = BEGAN_MS + 5_000, BEGAN_MS + 17_000
    for name, at_ms in (("a", first), ("b", second)):
        async with host(name) as told:
            for end in ends(at_ms):
                told.ended(thread().thread_id, end)

    assert spans(collector, "attempt agent")[0].parent_id == spans(collector, "run agent")[0].span_id
    for name in ("attempt agent", "run agent"):
        one, again = spans(collector, name)
        assert (one.span_id, one.parent_id, one.start_ns) == (again.span_id, again.parent_id, again.start_ns)
        assert one.attributes == again.attributes
        # Only the time of the decision is the second step's own.
        assert (again.end_ns - one.end_ns) // 1_000_000 == second - first
    assert sorted(collector.twice()) == sorted(one.span_id for one in collector.spans[:2])


async def test_a_host_that_takes_one_step_twice_tells_of_it_once(collector: Collector) -> None:
    async with host("a") as told:
        for at_ms in (BEGAN_MS + 5_000, BEGAN_MS + 17_000):
            for end in ends(at_ms):
                told.ended(thread().thread_id, end)
    assert len(collector.spans) == 2
    assert collector.twice() == []
