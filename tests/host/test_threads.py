"""The door to threads: create, runs, cancels, metadata, search; whole and in the tree's own errors."""

import asyncio
import contextlib
from uuid import uuid4

import pytest
from tests.support.agents import ScriptedAgent
from tests.support.host import EngineHost, Knobs, engine_host, new_thread
from tests.support.proxy import proxy_to
from tests.support.waiting import until
from tests.support.writing import numbers, put

from agentvisor.core.errors import (
    AgentVisorError,
    Conflict,
    InvalidInput,
    NotFound,
    StateTooLarge,
    ValueTooLarge,
)
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.runs import Ending, RunStatus
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.host.temporal_client import connect
from agentvisor.host.threads import Threads
from agentvisor.protocol.v1 import run_pb2

pytestmark = pytest.mark.flow

UPDATE = "UpdateWorkflowExecution"
UPDATE_WITH_START = "ExecuteMultiOperation"


def spec(run_id: str = "", **fields: object) -> run_pb2.RunSpec:
    return run_pb2.RunSpec(
        run_id=run_id or f"r-{uuid4().hex[:8]}",
        agent="agent",
        kind=run_pb2.RUN_KIND_AGENT,
        multitask_strategy=run_pb2.MULTITASK_STRATEGY_ENQUEUE,
        heartbeat_timeout_ms=4_000,
        timeout_ms=60_000,
        **fields,  # type: ignore[arg-type]
    )


async def completes(_agent: ScriptedAgent) -> None:
    """An agent with nothing to do."""


async def waits(agent: ScriptedAgent) -> None:
    """An agent that works until it is asked to end."""
    await agent.cancelled.wait()


# --- threads ---------------------------------------------------------------------------------------------------------


async def test_a_thread_is_created_once(engine: EngineHost) -> None:
    thread_id = new_thread()
    thread = await engine.threads.create(thread_id, {"team": "a"}, exist_ok=False)
    assert thread.status is ThreadStatus.IDLE
    assert thread.pending_writes_enabled is True
    with pytest.raises(Conflict, match="exists already"):
        await engine.threads.create(thread_id, {}, exist_ok=False)
    again = await engine.threads.create(thread_id, {"team": "b"}, exist_ok=True)
    assert again.metadata == thread.metadata


async def test_metadata_is_merged_key_by_key(engine: EngineHost) -> None:
    thread_id = new_thread()
    await engine.threads.create(thread_id, {"team": "a", "tier": 1}, exist_ok=False)
    thread = await engine.threads.update_metadata(thread_id, {"tier": 2, "new": True})
    fields = run_pb2.UpdateThread().metadata
    fields.ParseFromString(thread.metadata)
    assert {
        key: (value.string_value or value.number_value or value.bool_value) for key, value in fields.fields.items()
    } == {
        "team": "a",
        "tier": 2,
        "new": True,
    }


async def test_threads_are_found_by_metadata_and_status(engine: EngineHost) -> None:
    mark = uuid4().hex
    ids = [new_thread() for _ in range(3)]
    for number, thread_id in enumerate(ids):
        await engine.threads.create(thread_id, {"mark": mark, "tier": number % 2}, exist_ok=False)

    async def found(status: str | None = None, **metadata: str | int) -> set[ThreadId]:
        return set(await engine.threads.search(metadata=metadata, status=status, ids=None, limit=10, offset=0))

    async def all_there() -> bool:
        return await found(mark=mark) == set(ids) and await found("idle", mark=mark, tier=1) == {ids[1]}

    await until(all_there)
    assert await found("busy", mark=mark) == set()
    assert set(await engine.threads.search(metadata={}, status=None, ids=ids[:2], limit=10, offset=0)) == set(ids[:2])
    assert len(await engine.threads.search(metadata={"mark": mark}, status=None, ids=None, limit=2, offset=1)) == 2
    assert await engine.threads.search(metadata={}, status=None, ids=[], limit=10, offset=0) == []


@pytest.mark.parametrize(
    "metadata",
    [{"a'b": "x"}, {"a": "x' OR 'a'='a"}, {"a": "\n"}, {"": "x"}, {"a": "\\"}, {"a": "\ud800"}, {"a": "b' --"}],
    ids=repr,
)
async def test_a_search_cannot_be_turned_into_another(engine: EngineHost, metadata: dict[str, str]) -> None:
    assert await engine.threads.search(metadata=metadata, status=None, ids=None, limit=10, offset=0) == []


@pytest.mark.parametrize(
    "metadata, status", [({}, "idle' OR ''='"), ({"a" * 201: "x"}, None), ({"a": "x" * 200}, None)]
)
async def test_what_cannot_be_searched_is_refused(
    engine: EngineHost, metadata: dict[str, str], status: str | None
) -> None:
    with pytest.raises(InvalidInput, match="cannot be searched"):
        await engine.threads.search(metadata=metadata, status=status, ids=None, limit=10, offset=0)


# --- runs ------------------------------------------------------------------------------------------------------------


async def test_a_run_that_was_started_twice_runs_once(engine: EngineHost) -> None:
    engine.guests.scripts["agent"] = completes
    thread_id, one = new_thread(), spec()
    for _ in range(2):
        run = await engine.threads.start_run(thread_id, one, create=True, thread_metadata={})
        assert run.run_id == one.run_id
    run = await engine.threads.wait_run(thread_id, RunId(one.run_id))
    assert run.status is RunStatus.SUCCESS
    assert run.output == b"null"
    await engine.threads.start_run(thread_id, one, create=True, thread_metadata={})
    assert len(engine.guests.started) == 1
    assert (await engine.threads.get(thread_id)).status is ThreadStatus.IDLE


async def test_runs_of_a_thread_take_turns_and_one_that_may_not_wait_is_refused(engine: EngineHost) -> None:
    engine.guests.scripts["agent"] = waits
    thread_id, first, second = new_thread(), spec(), spec()
    await engine.threads.start_run(thread_id, first, create=True, thread_metadata={})
    await engine.threads.start_run(thread_id, second, create=True, thread_metadata={})
    refused = spec()
    refused.multitask_strategy = run_pb2.MULTITASK_STRATEGY_REJECT
    with pytest.raises(Conflict, match="busy with run") as conflict:
        await engine.threads.start_run(thread_id, refused, create=True, thread_metadata={})
    assert conflict.value.details["run_id"] == first.run_id
    with pytest.raises(Conflict, match="busy"):
        await engine.call(thread_id, put(0))
    for one in (first, second):
        await engine.threads.cancel_run(thread_id, RunId(one.run_id))
        await engine.threads.wait_run(thread_id, RunId(one.run_id))
    thread = await engine.threads.get(thread_id)
    assert [run.run_id for run in thread.runs.values()] == [first.run_id, second.run_id]


async def test_a_run_makes_a_session_end_and_takes_its_place(engine: EngineHost) -> None:
    engine.guests.scripts["agent"] = completes
    thread_id, one = new_thread(), spec()
    await engine.call(thread_id, put(0))
    await engine.threads.start_run(thread_id, one, create=True, thread_metadata={})
    run = await asyncio.wait_for(engine.threads.wait_run(thread_id, RunId(one.run_id)), 20)
    assert run.status is RunStatus.SUCCESS
    await engine.call(thread_id, put(1))
    assert numbers(await engine.threads.read(thread_id)) == {0, 1}


async def test_the_status_of_a_thread_follows_its_run(engine: EngineHost) -> None:
    async def fails(agent: ScriptedAgent) -> None:
        await agent.cancelled.wait()
        raise ValueError("no such luck")

    engine.guests.scripts["agent"] = fails
    thread_id, one = new_thread(), spec()
    await engine.threads.start_run(thread_id, one, create=True, thread_metadata={})
    await until(lambda: engine.guests.started)
    assert (await engine.threads.get(thread_id)).status is ThreadStatus.BUSY
    await engine.threads.cancel_run(thread_id, RunId(one.run_id))
    await engine.threads.wait_run(thread_id, RunId(one.run_id))
    assert (await engine.threads.get(thread_id)).status is ThreadStatus.IDLE


async def test_an_agents_exception_is_the_runs_error_and_is_not_tried_again(engine: EngineHost) -> None:
    async def fails(_agent: ScriptedAgent) -> None:
        raise ValueError("no such luck")

    engine.guests.scripts["agent"] = fails
    thread_id, one = new_thread(), spec()
    one.restart.max_attempts = 3
    await engine.threads.start_run(thread_id, one, create=True, thread_metadata={})
    run = await engine.threads.wait_run(thread_id, RunId(one.run_id))
    assert (run.status, run.error_type, run.error_message) == (RunStatus.ERROR, "ValueError", "no such luck")
    assert [attempt.ending for attempt in run.attempts] == [Ending.AGENT_ERROR]
    assert (await engine.threads.get(thread_id)).status is ThreadStatus.ERROR


async def test_the_time_budget_ends_a_run_and_says_so(engine: EngineHost) -> None:
    async def never(_agent: ScriptedAgent) -> None:
        await asyncio.Event().wait()

    engine.guests.scripts["agent"] = never
    thread_id, one = new_thread(), spec()
    one.timeout_ms = 300
    await engine.threads.start_run(thread_id, one, create=True, thread_metadata={})
    run = await asyncio.wait_for(engine.threads.wait_run(thread_id, RunId(one.run_id)), 20)
    assert run.status is RunStatus.TIMEOUT
    assert "time budget" in run.error_message
    assert len(run.attempts) == 1


async def test_a_killed_agent_is_started_again_within_its_budget_and_then_the_run_says_so(engine: EngineHost) -> None:
    async def dies(_agent: ScriptedAgent) -> None:
        raise asyncio.CancelledError  # a scripted agent's SIGKILL

    engine.guests.scripts["agent"] = dies
    thread_id, one = new_thread(), spec()
    one.restart.CopyFrom(
        run_pb2.RestartPolicy(max_attempts=2, initial_backoff_ms=10, max_backoff_ms=20, max_elapsed_ms=60_000)
    )
    await engine.threads.start_run(thread_id, one, create=True, thread_metadata={})
    run = await engine.threads.wait_run(thread_id, RunId(one.run_id))
    assert run.status is RunStatus.ERROR
    assert [attempt.ending for attempt in run.attempts] == [Ending.AGENT_SIGNAL] * 3
    assert "3 attempts" in run.error_message
    assert all(attempt.host_id == "h1" and attempt.started_at_ms for attempt in run.attempts)


async def test_an_unknown_run_is_not_found_nor_cancelled(engine: EngineHost) -> None:
    thread_id = new_thread()
    for call in (
        engine.threads.get_run(thread_id, RunId("r")),
        engine.threads.cancel_run(thread_id, RunId("r")),
        engine.threads.update_metadata(thread_id, {}),
        engine.threads.start_run(thread_id, spec(), create=False, thread_metadata={}),
    ):
        with pytest.raises(NotFound, match=thread_id):
            await call
    await engine.threads.create(thread_id, {}, exist_ok=False)
    for call in (
        engine.threads.get_run(thread_id, RunId("r")),
        engine.threads.cancel_run(thread_id, RunId("r")),
    ):
        with pytest.raises(NotFound, match="run r"):
            await call


async def test_an_input_that_is_too_large_is_refused_and_creates_no_thread(engine: EngineHost) -> None:
    thread_id = new_thread()
    with pytest.raises(ValueTooLarge, match=r"max_input"):
        await engine.threads.start_run(thread_id, spec(input=b"x" * 10_000_000), create=True, thread_metadata={})
    with pytest.raises(NotFound):
        await engine.threads.get(thread_id)


async def test_inputs_that_together_could_not_be_carried_on_are_refused(engine: EngineHost) -> None:
    engine.guests.scripts["agent"] = waits
    thread_id, first = new_thread(), spec(input=b"x" * 1_200_000)
    await engine.threads.start_run(thread_id, first, create=True, thread_metadata={})
    with pytest.raises(StateTooLarge, match=r"max_state"):
        await engine.threads.start_run(thread_id, spec(input=b"y" * 1_200_000), create=True, thread_metadata={})
    await engine.threads.cancel_run(thread_id, RunId(first.run_id))
    await engine.threads.wait_run(thread_id, RunId(first.run_id))
    assert (await engine.threads.get(thread_id)).status is ThreadStatus.IDLE


async def test_a_thread_whose_state_cannot_fit_fails_loudly_is_read_and_takes_no_runs(temporal: str) -> None:
    # The door of a host with a larger limit let it in; the thread's own limit came down with a later run.
    thread_id, queue = new_thread(), f"q-{uuid4().hex[:8]}"
    async with engine_host(temporal, queue, knobs=Knobs(compact_events=40)) as host:
        await host.call(thread_id, put(0, size=100_000))
        await host.threads.update_metadata(thread_id, {"n": 0})
        small = Threads(host.client, _with_state(host, 50_000))
        host.guests.scripts["agent"] = completes
        host.live(thread_id).stopping.set()
        await until(lambda: not host.attempts._live)
        with contextlib.suppress(StateTooLarge):
            await small.start_run(thread_id, spec(), create=True, thread_metadata={})

        async def failed() -> bool:
            await host.threads.update_metadata(thread_id, {"n": 1})
            return bool((await host.threads.get(thread_id)).failure)

        await until(failed, seconds=30)
        thread = await host.threads.read(thread_id)
        assert thread.status is ThreadStatus.ERROR
        assert "when everything is left out that may be" in thread.failure
        assert numbers(thread) == {0}
        with pytest.raises(AgentVisorError, match="failed and takes no runs"):
            await host.threads.start_run(thread_id, spec(), create=True, thread_metadata={})
        await host.threads.delete(thread_id)


def _with_state(host: EngineHost, state_bytes: int):
    from dataclasses import replace

    defaults = host.threads._defaults
    return replace(defaults, settings=replace(defaults.settings, state_bytes=state_bytes))


# --- the line --------------------------------------------------------------------------------------------------------


async def test_an_update_whose_answer_was_lost_is_sent_again_and_counts_once(temporal: str, engine: EngineHost) -> None:
    engine.guests.scripts["agent"] = completes
    thread_id, one = new_thread(), spec()
    async with proxy_to(temporal) as proxy:
        threads = Threads(await connect(proxy.address, "default"), engine.threads._defaults)
        lost = proxy.drop_reply(UPDATE_WITH_START)
        run = await threads.start_run(thread_id, one, create=True, thread_metadata={})
        assert lost.caught == 1
        assert run.run_id == one.run_id
        await engine.threads.wait_run(thread_id, RunId(one.run_id))
        assert len(engine.guests.started) == 1


async def test_a_caller_that_gives_up_is_let_go(temporal: str, engine: EngineHost) -> None:
    # Temporal's SDK turns the cancellation of a waiting update into an error of its own, which used to be retried.
    thread_id = new_thread()
    await engine.threads.create(thread_id, {}, exist_ok=False)
    async with proxy_to(temporal) as proxy:
        threads = Threads(await connect(proxy.address, "default"), engine.threads._defaults)
        held = proxy.hold_reply(UPDATE)
        waiting = asyncio.create_task(threads.update_metadata(thread_id, {"a": 1}))
        await held.until_caught()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(waiting, 2)
        assert proxy.seen[UPDATE] == 1
