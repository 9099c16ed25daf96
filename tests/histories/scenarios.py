"""Lives of threads whose histories are kept: what each does, on a real server, until it is recorded."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

from tests.histories.store_scenarios import STORE_SCENARIOS, Scenario
from tests.histories.upkeep_scenarios import UPKEEP_SCENARIOS
from tests.histories.way_scenarios import WAY_SCENARIOS
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import EngineHost, Knobs, Role, engine_host
from tests.support.proxy import HEARTBEAT, POLL_ACTIVITY, heartbeat_of, proxy_to
from tests.support.scene import make_compaction_due, scene, until_compacted, until_no_attempt
from tests.support.waiting import until
from tests.support.writing import control_write, put, task_write

from agentvisor.core.errors import NotFound
from agentvisor.core.ids import ThreadId
from agentvisor.core.owners import Owner
from agentvisor.core.runs import RunKind


def queue() -> str:
    return f"q-{uuid4().hex[:8]}"


@asynccontextmanager
async def host(temporal: str, *, knobs: Knobs | None = None, **agents: object) -> AsyncGenerator[EngineHost]:
    guests = ScriptedGuests(**agents)  # type: ignore[arg-type]
    async with engine_host(temporal, queue(), knobs=knobs, guests=guests) as one:
        yield one


async def idle(temporal: str, thread_id: ThreadId) -> None:
    """Created, and its metadata changed."""
    async with host(temporal) as one:
        await one.threads.create(thread_id, {"team": "a"}, exist_ok=False)
        await one.threads.update_metadata(thread_id, {"tier": 1})


async def owned(temporal: str, thread_id: ThreadId) -> None:
    """Created by an owner, run and changed by them; a stranger is refused; it continues as new and runs again."""

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(self.attempt))

    async with host(temporal, agent=agent) as one:
        hers, his = one.threads.of(Owner("Anna Ö.")), one.threads.of(Owner("bert"))
        await hers.create(thread_id, {"team": "a"}, exist_ok=False)
        one.threads, everybodys = hers, one.threads
        await hers.wait_run(thread_id, await one.start_run(thread_id, "agent"))
        with suppress(NotFound):
            await his.update_metadata(thread_id, {"team": "b"})
        await make_compaction_due(hers, thread_id, events=8)
        await one.client.get_workflow_handle(thread_id).execute_update("compact", b"", result_type=bytes)
        await until_compacted(hers, thread_id)
        await hers.wait_run(thread_id, await one.start_run(thread_id, "agent"))
        one.threads = everybodys


async def session_with_folds(temporal: str, thread_id: ThreadId) -> None:
    """A client outside writes, most of it in folds, and falls silent."""
    async with host(temporal, knobs=Knobs(fold_threshold=300, session_idle=0.5)) as one:
        for number in range(4):
            await one.call(thread_id, put(number))
            await one.call(thread_id, task_write(number, "task"))
            await one.call(thread_id, control_write(number, "answer"))
        await until_no_attempt(one.threads, thread_id)


async def run_that_completes(temporal: str, thread_id: ThreadId) -> None:
    """Two runs in turn."""

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(self.attempt))

    async with host(temporal, agent=agent) as one:
        runs = [await one.start_run(thread_id, "agent") for _ in range(2)]
        for run_id in runs:
            await one.threads.wait_run(thread_id, run_id)


async def run_that_fails(temporal: str, thread_id: ThreadId) -> None:
    """An exception of the agent."""

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(0))
        raise ValueError("no such luck")

    async with host(temporal, agent=agent) as one:
        await one.threads.wait_run(thread_id, await one.start_run(thread_id, "agent"))


async def killed_agent(temporal: str, thread_id: ThreadId) -> None:
    """Killed by a signal, restarted, completed."""

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(self.attempt))
        if self.attempt == 1:
            raise asyncio.CancelledError

    async with host(temporal, agent=agent) as one:
        await one.threads.wait_run(thread_id, await one.start_run(thread_id, "agent"))


async def lost_host(temporal: str, thread_id: ThreadId) -> None:
    """Heartbeats stop; the attempt times out with its log; another follows."""

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(self.attempt))
        if self.attempt == 1:
            proxy.refuse(HEARTBEAT, matches=heartbeat_of(1))
            await asyncio.Event().wait()

    async with proxy_to(temporal) as proxy:
        guests, knobs = ScriptedGuests(agent=agent), Knobs(heartbeat_timeout=1.2)
        async with scene(temporal, proxy, queue(), knobs=knobs, guests=guests) as (other, _victim):
            await other.threads.wait_run(thread_id, await other.start_run(thread_id, "agent"))


async def compaction_with_handover(temporal: str, thread_id: ThreadId) -> None:
    """Two compactions under a live guest."""
    leave = asyncio.Event()

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(0))
        await leave.wait()
        await self.call(put(1))

    async with host(temporal, knobs=Knobs(compact_events=40), agent=agent) as one:
        run_id = await one.start_run(thread_id, "agent")
        for times in (1, 2):
            await make_compaction_due(one.threads, thread_id)
            await until_compacted(one.threads, thread_id, times)
        leave.set()
        await one.threads.wait_run(thread_id, run_id)


async def compaction_while_idle(temporal: str, thread_id: ThreadId) -> None:
    """Continues as new with no run."""
    async with host(temporal, knobs=Knobs(compact_events=40)) as one:
        await one.threads.create(thread_id, {}, exist_ok=False)
        await make_compaction_due(one.threads, thread_id)
        await until_compacted(one.threads, thread_id)


async def lost_attach(temporal: str, thread_id: ThreadId) -> None:
    """A token after a compaction is lost on its way, and offered again."""
    from tests.faults.test_handover import is_attach

    leave = asyncio.Event()

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(0))
        await leave.wait()

    async with proxy_to(temporal) as proxy:
        guests, knobs = ScriptedGuests(agent=agent), Knobs(heartbeat_timeout=1.2, compact_events=40)
        async with scene(temporal, proxy, queue(), knobs=knobs, guests=guests) as (other, victim):
            run_id = await other.start_run(thread_id, "agent")
            await until(lambda: victim.guests.started)
            lost = proxy.drop_reply(POLL_ACTIVITY, matches=is_attach)
            await make_compaction_due(other.threads, thread_id)
            await lost.until_caught()
            leave.set()
            await other.threads.wait_run(thread_id, run_id)


async def cancelled_run(temporal: str, thread_id: ThreadId) -> None:
    """One run is cancelled while it works, one while it waits for its turn."""

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(0))
        await self.cancelled.wait()
        raise RuntimeError("cancelled")

    async with host(temporal, agent=agent) as one:
        first = await one.start_run(thread_id, "agent")
        second = await one.start_run(thread_id, "agent")
        await until(lambda: one.guests.started)
        await one.threads.cancel_run(thread_id, second)
        await one.threads.cancel_run(thread_id, first)
        await one.threads.wait_run(thread_id, first)


async def cancelled_before_it_started(temporal: str, thread_id: ThreadId) -> None:
    """No host takes the attempt; it is cancelled, once by a compaction and once by its caller."""
    async with engine_host(temporal, queue(), knobs=Knobs(compact_events=40), role=Role.WORKFLOWS) as one:
        run_id = await one.start_run(thread_id, "agent")
        await make_compaction_due(one.threads, thread_id)
        await until_compacted(one.threads, thread_id)
        await one.threads.cancel_run(thread_id, run_id)
        await one.threads.wait_run(thread_id, run_id)


async def session_yields(temporal: str, thread_id: ThreadId) -> None:
    """A run makes a session end."""

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(1))

    async with host(temporal, agent=agent) as one:
        await one.call(thread_id, put(0))
        await one.threads.wait_run(thread_id, await one.start_run(thread_id, "agent"))


async def state_that_cannot_fit(temporal: str, thread_id: ThreadId) -> None:
    """The thread's loud end."""
    async with host(temporal, knobs=Knobs(compact_events=40, compaction_bytes=14_000, session_idle=0.3)) as one:
        for number in range(3):
            await one.call(thread_id, put(number, size=5_000, namespace=f"sub|{number}"))
        await until_no_attempt(one.threads, thread_id)

        async def failed() -> bool:
            await one.threads.update_metadata(thread_id, {})
            return bool((await one.threads.get(thread_id)).failure)

        await until(failed)


async def updates_of_the_state(temporal: str, thread_id: ThreadId) -> None:
    """One whose process is killed and that is made anew, one that fails, one under which the thread is compacted."""
    leave = asyncio.Event()

    async def killed(self: ScriptedAgent) -> None:
        await self.call(put(0))
        if self.attempt == 1:
            raise asyncio.CancelledError
        await self.call(put(1))

    async def refused(self: ScriptedAgent) -> None:
        await self.call(put(2))
        raise ValueError("no such node")

    async def compacted(self: ScriptedAgent) -> None:
        await self.call(put(2))
        await leave.wait()

    agents = {"killed": killed, "refused": refused, "compacted": compacted}
    async with host(temporal, knobs=Knobs(compact_events=60), **agents) as one:
        for agent in ("killed", "refused"):
            run_id = await one.start_run(thread_id, agent, kind=RunKind.UPDATE)
            await one.threads.wait_run(thread_id, run_id)
        run_id = await one.start_run(thread_id, "compacted", kind=RunKind.UPDATE)
        await until(lambda: one.guests.started[-1][0] == run_id)
        await make_compaction_due(one.threads, thread_id, events=60)
        await until_compacted(one.threads, thread_id)
        leave.set()
        await one.threads.wait_run(thread_id, run_id)


SCENARIOS: dict[str, Scenario] = (
    {
        scenario.__name__: scenario
        for scenario in (
            idle,
            owned,
            session_with_folds,
            run_that_completes,
            run_that_fails,
            killed_agent,
            lost_host,
            compaction_with_handover,
            compaction_while_idle,
            lost_attach,
            cancelled_run,
            cancelled_before_it_started,
            session_yields,
            state_that_cannot_fit,
            updates_of_the_state,
        )
    }
    | STORE_SCENARIOS
    | WAY_SCENARIOS
    | UPKEEP_SCENARIOS
)
