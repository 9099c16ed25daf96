"""Encrypted threads: keys that change under load or are missing, payloads that were moved or cut, threads of before."""

import asyncio
import time
from uuid import uuid4

import pytest
from prometheus_client import REGISTRY
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest
from temporalio.client import Client, ScheduleActionStartWorkflow
from temporalio.common import RawValue
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.encryption import encryption
from tests.support.host import EngineHost, Knobs, engine_host, new_thread, whole
from tests.support.scene import until_compacted
from tests.support.temporal import TemporalProcess
from tests.support.waiting import until
from tests.support.writing import numbers, put

from agentvisor.core.crons import Cron
from agentvisor.core.errors import Corrupt, Sealed, Unavailable
from agentvisor.core.ids import ThreadId
from agentvisor.core.runs import RunStatus
from agentvisor.host.codec.payloads import ENCODING
from agentvisor.host.cron_schedules import CronSchedules
from agentvisor.host.temporal_client import connect
from agentvisor.host.threads_migrate import Migration, migrate_all

pytestmark = pytest.mark.flow

FAILED_TASK = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED


def queue() -> str:
    return f"q-{uuid4().hex[:8]}"


async def writes(agent: ScriptedAgent) -> None:
    await agent.call(put(1))


def guests() -> ScriptedGuests:
    return ScriptedGuests(agent=writes)


async def ran(host: EngineHost, thread_id: ThreadId | None = None) -> ThreadId:
    """A thread on which a run has written a checkpoint."""
    thread_id = thread_id or new_thread()
    run = await host.threads.wait_run(thread_id, await host.start_run(thread_id, "agent"))
    assert run.status is RunStatus.SUCCESS
    return thread_id


async def ran_at_last(host: EngineHost, thread_id: ThreadId) -> None:
    """The same once Temporal tries the thread's task again, which no host could do before."""

    async def again() -> bool:
        try:
            assert numbers(await whole(host.threads, thread_id)) == {1}
            await ran(host, thread_id)
        except Unavailable:
            return False
        return True

    await until(again, seconds=60)


async def payloads_of(client: Client, thread_id: ThreadId) -> list[Payload]:
    """Of signals and of the beginning, as Temporal has them."""
    found: list[Payload] = []
    async for event in client.get_workflow_handle(thread_id).fetch_history_events():
        found += event.workflow_execution_signaled_event_attributes.input.payloads
        found += event.workflow_execution_started_event_attributes.input.payloads
    return found


async def made_cron(client: Client, task_queue: str) -> str:
    """A cron's schedule; its id."""
    schedules = CronSchedules(client, task_queue)
    cron = Cron(cron_id="c", owner="", assistant_id="a", thread_id=None, schedule="0 0 1 1 *")
    await client.create_schedule(schedules.place("c"), schedules.schedule(cron))
    return schedules.place("c")


async def signalled(client: Client, thread_id: ThreadId, payload: Payload) -> None:
    request = SignalWorkflowExecutionRequest(
        namespace="default",
        workflow_execution=WorkflowExecution(workflow_id=thread_id),
        signal_name="fold",
        input=Payloads(payloads=[payload]),
        request_id=str(uuid4()),
    )
    await client.workflow_service.signal_workflow_execution(request)


async def failed_tasks(client: Client, thread_id: ThreadId) -> int:
    history = client.get_workflow_handle(thread_id).fetch_history_events()
    return len([event async for event in history if event.event_type == FAILED_TASK])


def refused_payloads(reason: str) -> float:
    """Those of Temporal that hosts of this process have refused for that reason."""
    labels = {"source": "temporal", "reason": reason}
    return REGISTRY.get_sample_value("agentvisor_refused_payloads_total", labels) or 0


async def test_a_payload_of_another_thread_or_a_cut_one_costs_itself_and_neither_thread(temporal: str) -> None:
    async with engine_host(temporal, queue(), guests=guests(), encryption=encryption("k")) as host:
        one, other = await ran(host), await ran(host)
        moved = (await payloads_of(host.client, one))[0]
        assert moved.metadata["encoding"] == ENCODING
        own = (await payloads_of(host.client, other))[0]
        before = refused_payloads("moved"), refused_payloads("damaged")
        for bad in (moved, Payload(metadata=dict(own.metadata), data=own.data[:-1])):
            await signalled(host.client, other, bad)
        await ran(host, other)
        assert numbers(await whole(host.threads, other)) == {1}
        assert await failed_tasks(host.client, other) == 0
        assert refused_payloads("moved") > before[0]
        assert refused_payloads("damaged") > before[1]


async def test_a_damaged_update_is_refused_and_the_thread_goes_on(temporal: str) -> None:
    async with engine_host(temporal, queue(), guests=guests(), encryption=encryption("k")) as host:
        one, other = await ran(host), await ran(host)
        moved = (await payloads_of(host.client, one))[0]

        plain = await connect(temporal, "default")  # gives a payload on as it is
        with pytest.raises(Exception, match=r"(?i)update|decod|workflow"):
            await asyncio.wait_for(
                plain.get_workflow_handle(other).execute_update("update_thread", RawValue(moved), result_type=bytes), 8
            )
        await ran(host, other)
        assert await failed_tasks(host.client, other) == 0


async def test_a_missing_key_is_named_costs_few_tries_and_the_host_goes_on_with_other_threads(temporal: str) -> None:
    name = queue()
    async with engine_host(temporal, name, guests=guests(), encryption=encryption("first")) as host:
        thread_id = await ran(host)
    async with engine_host(temporal, name, guests=guests(), encryption=encryption("second")) as host:
        began = time.monotonic()
        with pytest.raises(Sealed, match=rf"{thread_id}.*'first', which this host does not have: add it"):
            await host.threads.get(thread_id)
        with pytest.raises(Sealed, match="'first'"):
            await host.start_run(thread_id, "agent")
        await ran(host)
        tries = (await host.client.get_workflow_handle(thread_id).describe()).raw_description.pending_workflow_task
        print(f"after {time.monotonic() - began:.1f} s: attempt {tries.attempt} of the workflow task")
        assert tries.attempt < 10
    async with engine_host(temporal, name, guests=guests(), encryption=encryption("second", "first")) as host:
        await ran_at_last(host, thread_id)


async def test_another_key_under_the_same_id_loses_nothing(temporal: str) -> None:
    name = queue()
    wrong = encryption("k").model_copy(update={"keys": [encryption("other").keys[0].model_copy(update={"id": "k"})]})
    async with engine_host(temporal, name, guests=guests(), encryption=encryption("k")) as host:
        thread_id = await ran(host)
    async with engine_host(temporal, name, guests=guests(), encryption=wrong) as host:
        with pytest.raises(Sealed, match="another key 'k'"):
            await host.threads.get(thread_id)
    async with engine_host(temporal, name, guests=guests(), encryption=encryption("k")) as host:
        await ran_at_last(host, thread_id)


async def test_a_host_without_keys_says_so_of_encrypted_threads_and_serves_its_own(temporal: str) -> None:
    name = queue()
    async with engine_host(temporal, name, guests=guests(), encryption=encryption("k")) as host:
        thread_id = await ran(host)
    async with engine_host(temporal, name, guests=guests()) as host:
        with pytest.raises(Sealed, match="'k', which this host does not have"):
            await host.threads.get(thread_id)
        await ran(host)


async def test_a_state_that_is_damaged_is_said_to_be_and_can_be_deleted(temporal: str) -> None:
    name = queue()
    async with engine_host(temporal, name, guests=guests(), encryption=encryption("k")) as host:
        one, other = await ran(host), new_thread()
        state = (await payloads_of(host.client, one))[0]
        plain = await connect(temporal, "default")
        await plain.start_workflow(
            "agentvisor.thread", RawValue(state), id=other, task_queue=host.own_queue.partition(":")[0]
        )
        with pytest.raises(Corrupt, match=rf"{other}.*was written for {one}"):
            await host.threads.get(other)
        await ran(host)
        await host.threads.delete(other)


async def test_threads_of_before_are_taken_along_and_then_plaintext_is_refused(
    temporal_process: TemporalProcess,
) -> None:
    name = queue()
    async with engine_host(temporal_process.address, name, guests=guests()) as host:
        thread_id = await ran(host)
        await host.threads.update_metadata(thread_id, {"color": "red"})
        schedule = await made_cron(host.client, name)
    required, lenient = encryption("k"), encryption("k", required=False)
    async with engine_host(temporal_process.address, name, guests=guests(), encryption=required) as host:
        with pytest.raises(Sealed, match=rf"{thread_id}.*not encrypted.*migrate --all"):
            await host.threads.get(thread_id)
        assert await migrate_all(host.client, everything=False) == {Migration.SEALED: 1}
    async with engine_host(temporal_process.address, name, guests=guests(), encryption=lenient) as host:
        await ran(host, thread_id)
        outcomes = await migrate_all(host.client, everything=True)
        assert outcomes == {Migration.ASKED: 1, Migration.REWRITTEN: 1}
        await until_compacted(host.threads, thread_id)
        action = (await host.client.get_schedule_handle(schedule).describe()).schedule.action
        assert isinstance(action, ScheduleActionStartWorkflow)
        assert [one.metadata["encoding"] for one in action.args] == [ENCODING]
    async with engine_host(temporal_process.address, name, guests=guests(), encryption=required) as host:
        assert numbers(await whole(host.threads, thread_id)) == {1}
        await ran(host, thread_id)
        assert await migrate_all(host.client, everything=False) == {Migration.PRESENT: 1}

        async def found() -> bool:
            search = host.threads.search(metadata={"color": "red"}, status=None, ids=None, limit=10, offset=0)
            return await search == [thread_id]

        await until(found)
        assert all(one.metadata["encoding"] == ENCODING for one in await payloads_of(host.client, thread_id))


async def test_hosts_get_their_first_keys_one_after_the_other_and_every_run_goes_well(temporal: str) -> None:
    """As an operator rolls it out: all hosts can decrypt, then the first of them encrypts."""
    name = queue()

    async def all_well(*hosts: EngineHost) -> None:
        for thread_id in await asyncio.gather(*(ran(host) for host in hosts for _ in range(3))):
            for host in hosts:
                assert numbers(await whole(host.threads, thread_id)) == {1}
                await host.threads.update_metadata(thread_id, {"by": host.own_queue[-8:]})

    def keyed(label: str, *, encrypts: bool):
        only = encryption("k", required=False, encrypts=encrypts)
        return engine_host(temporal, name, name=label, guests=guests(), encryption=only)

    async with keyed("decrypts", encrypts=False) as decrypts:
        async with engine_host(temporal, name, name="no-keys", guests=guests()) as without:
            await all_well(without, decrypts)
        async with keyed("encrypts", encrypts=True) as encrypts:
            await all_well(encrypts, decrypts)
            thread_id = await ran(encrypts)
            started = (await payloads_of(encrypts.client, thread_id))[0]
            assert started.metadata["encoding"] == ENCODING
            assert await failed_tasks(decrypts.client, thread_id) == 0


async def test_a_key_is_rotated_under_load_and_nothing_is_lost(temporal_process: TemporalProcess) -> None:
    """As an operator does it: all hosts know the new key, then it writes, then threads are taken along."""
    name, gate = queue(), asyncio.Event()

    async def works(agent: ScriptedAgent) -> None:
        for number in range(1, 9):
            await agent.call(put(number))
            if number == 4:
                await gate.wait()

    knobs = Knobs(heartbeat_timeout=2.0, fold_quiet=0.2, fold_age=0.4)
    threads = [new_thread() for _ in range(4)]

    def host(label: str, *keys: str):
        scripts = ScriptedGuests(agent=works)
        return engine_host(
            temporal_process.address, name, name=label, knobs=knobs, guests=scripts, encryption=encryption(*keys)
        )

    async with host("stays", "old", "new") as both:
        async with host("goes", "old", "new"):
            runs = [await both.start_run(thread, "agent") for thread in threads]

            async def half() -> bool:
                return all([4 in numbers(await both.threads.read(thread)) for thread in threads])

            await until(half)
        async with host("writes-new", "new", "old") as fresh:
            gate.set()
            for thread, run in zip(threads, runs, strict=True):
                assert (await fresh.threads.wait_run(thread, run)).status is RunStatus.SUCCESS
                assert numbers(await whole(both.threads, thread)) == set(range(1, 9))
    async with host("writes-new", "new", "old") as fresh:
        assert (await migrate_all(fresh.client, everything=True))[Migration.ASKED] == 4
        for thread in threads:
            await until_compacted(fresh.threads, thread)
    async with host("only-new", "new") as last:
        for thread in threads:
            assert numbers(await whole(last.threads, thread)) == set(range(1, 9))
            assert {one.metadata["agentvisor-key"] for one in await payloads_of(last.client, thread)} == {b"new"}
