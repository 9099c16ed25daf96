"""What an attempt takes of effects and questions, refuses, and carries across a compaction; on a real server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from tests.support.agents import Guided, ScriptedAgent
from tests.support.host import EngineHost, Knobs, engine_host, new_thread, whole
from tests.support.scene import make_compaction_due, until_compacted
from tests.support.writing import name, put

from agentvisor.client import effect_requests as requests
from agentvisor.core.effects import MAX_KEY, Effect, EffectState, Place
from agentvisor.core.errors import Conflict, InvalidInput, StateTooLarge, ValueTooLarge
from agentvisor.core.ids import ROOT, RunId, ThreadId
from agentvisor.core.runs import RunStatus
from agentvisor.host import attempt_effects
from agentvisor.host.threads_copy import copy_head
from agentvisor.protocol.v1.store_pb2 import CopyThread, QuestionRequest, StoreReply, StoreRequest

pytestmark = pytest.mark.flow

PLAIN = Place("", "charge")
OF_ONE = Place("/task", "charge", ROOT, name(1))


class Stage:
    """A live attempt that the test writes through."""

    def __init__(self, host: EngineHost, guided: Guided, thread_id: ThreadId, run_id: RunId) -> None:
        self.host = host
        self.guided = guided
        self.thread_id = thread_id
        self.run_id = run_id

    @property
    def agent(self) -> ScriptedAgent:
        return self.guided.now

    async def ask(self, request: StoreRequest) -> Effect | None:
        return requests.entry_of(await self.agent.call(request))

    async def effects(self) -> list[Effect]:
        """As any reader sees them."""
        return list((await whole(self.host.threads, self.thread_id)).store.effects)

    async def finish(self) -> RunStatus:
        self.guided.leave.set()
        return (await asyncio.wait_for(self.host.threads.wait_run(self.thread_id, self.run_id), 60)).status


@asynccontextmanager
async def stage(temporal: str, **knobs: int) -> AsyncGenerator[Stage]:
    guided, thread_id = Guided(), new_thread()
    async with engine_host(temporal, f"q-{uuid4().hex[:8]}", knobs=Knobs(**knobs), guests=guided.guests) as host:  # type: ignore[arg-type]
        run_id = await host.start_run(thread_id, "agent")
        await asyncio.wait_for(guided.ready.wait(), 30)
        yield Stage(host, guided, thread_id, run_id)
        guided.leave.set()


def fresh(reply: StoreReply) -> bool:
    return reply.effect.fresh


async def test_only_the_first_intent_is_fresh(temporal: str) -> None:
    async with stage(temporal) as one:
        replies = [await one.agent.call(requests.intend(PLAIN)) for _ in range(2)]
        assert [fresh(reply) for reply in replies] == [True, False]
        assert fresh(await one.agent.call(requests.intend(PLAIN, again=True)))
        await one.ask(requests.done(PLAIN, b"1", 0))
        assert not fresh(await one.agent.call(requests.intend(PLAIN, again=True)))
        (effect,) = await one.effects()
        assert (effect.state, effect.result, effect.by.run_id, effect.by.attempt) == (
            EffectState.DONE, b"1", one.run_id, 1,
        )  # fmt: skip


async def test_an_effect_of_a_task_waits_for_the_checkpoint_that_the_task_begins_from(temporal: str) -> None:
    async with stage(temporal) as one:
        intent = asyncio.ensure_future(one.agent.call(requests.intend(OF_ONE)))
        await one.agent.call(put(0))
        assert not intent.done()
        await one.agent.call(put(1))
        assert fresh(await asyncio.wait_for(intent, 10))
        await one.agent.call(put(2))
        assert await one.effects() == []


async def test_an_effect_whose_checkpoint_never_comes_is_refused(
    temporal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_effects, "CHECKPOINT_SECONDS", 0.2)
    async with stage(temporal) as one:
        with pytest.raises(Conflict, match="has not been stored"):
            await one.agent.call(requests.intend(OF_ONE))
        assert await one.effects() == []


@pytest.mark.parametrize("key", ["", "x" * (MAX_KEY + 1)])
async def test_a_key_that_is_none_is_refused_at_the_hosts_door_too(temporal: str, key: str) -> None:
    async with stage(temporal) as one:
        with pytest.raises(InvalidInput, match="1 to 256 characters"):
            await one.agent.call(requests.intend(Place("", key)))


async def test_past_the_limit_new_effects_are_refused_and_the_way_out_is_named(temporal: str) -> None:
    async with stage(temporal, max_effects=2) as one:
        for key in ("a", "b"):
            await one.ask(requests.intend(Place("", key)))
        with pytest.raises(StateTooLarge, match=r"storage\.max_effects.*forget_effect"):
            await one.ask(requests.intend(Place("", "c")))
        await one.ask(requests.done(Place("", "a"), b"1", 0))
        await one.ask(requests.forget(Place("", "b")))
        assert fresh(await one.agent.call(requests.intend(Place("", "c"))))


async def intended_until_full(one: Stage) -> int:
    """How many effects the thread has room for."""
    for number in range(100):
        try:
            await one.ask(requests.intend(Place("", f"{number}")))
        except StateTooLarge:
            return number
    raise AssertionError("it takes everything")


async def test_a_result_that_does_not_fit_is_refused_and_that_it_is_done_is_recorded_all_the_same(
    temporal: str,
) -> None:
    async with stage(temporal, max_state=200_000) as one:
        await one.ask(requests.intend(PLAIN))
        with pytest.raises(ValueTooLarge, match=r"storage\.max_inline_value"):
            await one.ask(requests.done(PLAIN, b"1" * 1_600_000, 0))
        with pytest.raises(StateTooLarge, match=r"storage\.max_state"):
            await one.ask(requests.done(PLAIN, b"1" * 300_000, 0))
        await one.agent.call(put(0, size=180_000))
        full = await one.ask(requests.unkept(PLAIN, "it is too large", 0))
        assert full is not None
        assert (full.state, full.unkept) == (EffectState.DONE, "it is too large")
        keys = await intended_until_full(one)
        assert keys < 10, "every intent has room set aside for how it ends"
        for key in range(keys):
            await one.ask(requests.failed(Place("", f"{key}"), ValueError("x" * 10_000)))


async def test_an_effect_crosses_a_compaction_between_its_intent_and_its_result(temporal: str) -> None:
    async with stage(temporal, compact_events=30) as one:
        await one.ask(requests.intend(PLAIN))
        await make_compaction_due(one.host.threads, one.thread_id)
        await until_compacted(one.host.threads, one.thread_id)
        after = await one.ask(requests.done(PLAIN, b'"paid"', 0))
        assert after is not None
        assert after.result == b'"paid"'
        assert one.guided.killed == 0
        assert len(one.guided.agents) == 1
        assert await one.finish() is RunStatus.SUCCESS
        assert [effect.result for effect in await one.effects()] == [b'"paid"']
        storage = await one.host.threads.storage(one.thread_id)
        assert (storage.effects, storage.intended_effects) == (1, 0)
        assert storage.effect_bytes > 0


async def test_a_copy_takes_along_what_the_tasks_that_it_begins_with_have_done(temporal: str) -> None:
    async with stage(temporal) as one:
        await one.agent.call(put(1))
        await one.ask(requests.intend(PLAIN))
        await one.ask(requests.intend(OF_ONE))
        await one.ask(requests.done(OF_ONE, b"1", 0))
        copy = await copy_head(one.host.threads, one.thread_id)
        (effect,) = (await whole(one.host.threads, copy.thread_id)).store.effects
        assert (effect.place, effect.result) == (OF_ONE, b"1")
        target = new_thread()
        assert await one.finish() is RunStatus.SUCCESS
        await one.host.call(one.thread_id, StoreRequest(copy_thread=CopyThread(target_thread_id=target)))
        assert list((await whole(one.host.threads, target)).store.effects) == [effect]


async def test_a_client_outside_any_run_has_no_effects_and_no_questions(engine: EngineHost) -> None:
    thread_id = new_thread()
    for request in (requests.intend(PLAIN), StoreRequest(question=QuestionRequest(read=True))):
        with pytest.raises(InvalidInput, match="inside a run"):
            await engine.call(thread_id, request)
