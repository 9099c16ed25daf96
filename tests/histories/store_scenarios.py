"""Lives of threads that use the whole store: subgraphs, questions, delta channels; compacted in each way."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from uuid import uuid4

from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import EngineHost, Knobs, engine_host
from tests.support.operations import carried_out
from tests.support.scene import make_compaction_due, until_compacted
from tests.support.state_writer import NOWHERE
from tests.support.waiting import until
from tests.support.writing import control_write, name, put, task_write

from agentvisor.client import saves
from agentvisor.client.connection import Connection
from agentvisor.client.known import Known
from agentvisor.client.state import Place, State
from agentvisor.core.ids import ThreadId
from agentvisor.core.runs import RunStatus
from agentvisor.protocol.blobs import Limits
from agentvisor.protocol.metadata import metadata_to_struct
from agentvisor.protocol.v1 import store_pb2
from agentvisor.protocol.v1.guest_pb2 import Outcome

Scenario = Callable[[str, ThreadId], Awaitable[None]]


@asynccontextmanager
async def host(temporal: str, knobs: Knobs, **agents: object) -> AsyncGenerator[EngineHost]:
    guests = ScriptedGuests(**agents)  # type: ignore[arg-type]
    async with engine_host(temporal, f"q-{uuid4().hex[:8]}", knobs=knobs, guests=guests) as one:
        yield one


def put_under(number: int, namespace: str, root: int, *, delta: bool = False) -> store_pb2.StoreRequest:
    """A checkpoint of a subgraph; with `delta` one whose channel lives in the writes of its ancestors."""
    request = put(number, namespace=namespace)
    metadata: dict[str, object] = {"parents": {"": name(root)} if namespace else {}}
    if delta:
        metadata["counters_since_delta_snapshot"] = {"log": [1, 1]}
        request.put.checkpoint.channels.add(channel="log")
    request.put.checkpoint.metadata.CopyFrom(metadata_to_struct(metadata))
    return request


def log_write(number: int) -> store_pb2.StoreRequest:
    request = task_write(number, f"task-{number}")
    request.put_writes.writes[0].channel = "log"
    request.put_writes.writes[0].is_state = True
    return request


async def subgraphs_with_small_history(temporal: str, thread_id: ThreadId) -> None:
    """Namespaces come and are reclaimed, through compactions under a live agent."""

    async def agent(self: ScriptedAgent) -> None:
        for number in range(0, 60, 3):
            await self.call(put(number))
            await self.call(put_under(number + 1, f"node:{number}", number))
            await self.call(task_write(number + 1, "late"))
            await self.call(put_under(number + 2, "keeps", number))

    knobs = Knobs(compact_events=60, fold_threshold=0, checkpoint_history=2)
    async with host(temporal, knobs, agent=agent) as one:
        await one.threads.wait_run(thread_id, await one.start_run(thread_id, "agent"))


async def delta_channels_with_small_history(temporal: str, thread_id: ThreadId) -> None:
    """Bones are left, trimmed and carried on."""

    async def agent(self: ScriptedAgent) -> None:
        for number in range(40):
            await self.call(put_under(number, "", 0, delta=True))
            await self.call(log_write(number))

    knobs = Knobs(compact_events=60, fold_threshold=0, checkpoint_history=2)
    async with host(temporal, knobs, agent=agent) as one:
        await one.threads.wait_run(thread_id, await one.start_run(thread_id, "agent"))


async def interrupted_and_answered(temporal: str, thread_id: ThreadId) -> None:
    """Control writes, a compaction while the question is open, another run that answers."""

    async def asks(self: ScriptedAgent) -> None:
        await self.call(put(0))
        await self.call(control_write(0, "question"))

    async def answers(self: ScriptedAgent) -> None:
        await self.call(control_write(0, "answer"))
        await self.call(put(1))

    async with host(temporal, Knobs(), asks=asks, answers=answers) as one:
        await one.threads.wait_run(thread_id, await one.start_run(thread_id, "asks"))
        await one.client.get_workflow_handle(thread_id).execute_update("compact", b"", result_type=bytes)
        await until_compacted(one.threads, thread_id)
        await one.threads.wait_run(thread_id, await one.start_run(thread_id, "answers"))


async def deadlines_of_questions(temporal: str, thread_id: ThreadId) -> None:
    """One is given its default answer, after a compaction while it waits; the next one expires; new input follows."""

    async def agent(self: ScriptedAgent) -> Outcome | None:
        if self.task.forgets:
            await self.call(report())
            return None
        answered = bool(self.task.spec.answers)
        default = None if answered else b'"default"'
        terms = store_pb2.Terms(deadline_after_ms=500 if answered else 2_000, default_answer=default)
        await self.call(report(store_pb2.Interrupt(id="b" if answered else "a", value=b"1", terms=terms)))
        return Outcome(kind=Outcome.KIND_PAUSED)

    async with host(temporal, Knobs(), agent=agent) as one:
        first = await one.start_run(thread_id, "agent")
        await one.threads.wait_run(thread_id, first)
        await one.client.get_workflow_handle(thread_id).execute_update("compact", b"", result_type=bytes)
        await until_compacted(one.threads, thread_id)

        async def expired() -> bool:
            last = (await one.threads.get(thread_id)).last_agent_run
            return last is not None and last.status is RunStatus.TIMEOUT

        await until(expired)
        runs = (await one.threads.get(thread_id)).runs
        assert [run.spec.answers for run in runs.values()] == [(), ("a",)]
        last = await one.threads.wait_run(thread_id, await one.start_run(thread_id, "agent"))
        assert last.status is RunStatus.SUCCESS


def report(*interrupts: store_pb2.Interrupt) -> store_pb2.StoreRequest:
    told = store_pb2.Interrupts(reported=interrupts, takes_input=True)
    return store_pb2.StoreRequest(question=store_pb2.QuestionRequest(report=told))


async def agents_in_turn(temporal: str, thread_id: ThreadId) -> None:
    """What one agent asks is kept while another runs, through a compaction; both expire, each by itself."""

    async def first(self: ScriptedAgent) -> Outcome:
        swallowed = store_pb2.Interrupt(id="n", terms=store_pb2.Terms(deadline_after_ms=1))
        await self.call(store_pb2.StoreRequest(question=store_pb2.QuestionRequest(note=swallowed)))
        terms = store_pb2.Terms(deadline_after_ms=2_500)
        await self.call(report(store_pb2.Interrupt(id="a", value=b"1", terms=terms)))
        return Outcome(kind=Outcome.KIND_PAUSED)

    async def second(self: ScriptedAgent) -> Outcome:
        terms = store_pb2.Terms(deadline_after_ms=3_000)
        await self.call(report(store_pb2.Interrupt(id="b", value=b"1", terms=terms)))
        return Outcome(kind=Outcome.KIND_PAUSED)

    async with host(temporal, Knobs(), first=first, second=second) as one:
        for agent in ("first", "second"):
            await one.threads.wait_run(thread_id, await one.start_run(thread_id, agent))
        await one.client.get_workflow_handle(thread_id).execute_update("compact", b"", result_type=bytes)
        await until_compacted(one.threads, thread_id)

        async def expired() -> bool:
            return {run.status for run in (await one.threads.get(thread_id)).runs.values()} == {RunStatus.TIMEOUT}

        await until(expired)


async def compacted_by_signals(temporal: str, thread_id: ThreadId) -> None:
    """Each fold counts."""

    async def agent(self: ScriptedAgent) -> None:
        for number in range(40):
            await self.call(put(number))

    knobs = Knobs(compact_events=10**6, compact_signals=15, fold_threshold=0)
    async with host(temporal, knobs, agent=agent) as one:
        await one.threads.wait_run(thread_id, await one.start_run(thread_id, "agent"))


async def made_smaller_under_a_run(temporal: str, thread_id: ThreadId) -> None:
    """What is left out does not suffice under a live guest: the run begins anew with less."""
    begun = asyncio.Event()

    async def agent(self: ScriptedAgent) -> None:
        if self.attempt == 1:
            for number in range(8):
                await self.call(put(number, size=6_000))
            begun.set()
            await asyncio.Event().wait()

    knobs = Knobs(compact_events=60, max_state=30_000)
    async with host(temporal, knobs, agent=agent) as one:
        run_id = await one.start_run(thread_id, "agent")
        await begun.wait()
        await make_compaction_due(one.threads, thread_id, events=60)
        await one.threads.wait_run(thread_id, run_id)


async def runs_that_are_pruned(temporal: str, thread_id: ThreadId) -> None:
    """Between runs, as soon as half of the events are used up."""

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(0))

    async with host(temporal, Knobs(compact_events=80, run_history=2), agent=agent) as one:
        for _ in range(8):
            await one.threads.wait_run(thread_id, await one.start_run(thread_id, "agent"))


async def saves_and_thread_state(temporal: str, thread_id: ThreadId) -> None:
    """Saves that are pruned, a list that grows, values that are replaced and deleted, through compactions."""

    async def agent(self: ScriptedAgent) -> None:
        known = Known()
        state = State(Connection(NOWHERE, known=known), resends=False)

        async def do(operation: Generator[store_pb2.StoreRequest, store_pb2.StoreReply, object]) -> None:
            await carried_out(operation, self.call)

        for number in range(10):
            data = json.dumps({"number": number, "text": "what was said " * 20}).encode()
            await do(saves.save("", f"key:{number % 2}", data, "run", known=known, limits=Limits()))
            await do(state.append(Place("", "", "events"), data, None))
            await do(state.set(Place("", "s", "value"), data, None))
            if number % 5 == 0:
                await do(state.delete(Place("", "s", "value"), None))

    knobs = Knobs(compact_events=60, fold_threshold=0, checkpoint_history=3)
    async with host(temporal, knobs, agent=agent) as one:
        await one.threads.wait_run(thread_id, await one.start_run(thread_id, "agent"))


STORE_SCENARIOS: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        subgraphs_with_small_history,
        delta_channels_with_small_history,
        interrupted_and_answered,
        deadlines_of_questions,
        agents_in_turn,
        compacted_by_signals,
        made_smaller_under_a_run,
        runs_that_are_pruned,
        saves_and_thread_state,
    )
}
