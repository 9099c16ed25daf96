"""Whoever has lost his run, or never had it, is refused: every kind of request, every way in."""

import asyncio
from pathlib import Path

import grpc
import pytest
from tests.support.agents import Guided
from tests.support.host import EngineHost, Knobs, Role, engine_host, new_thread, whole
from tests.support.proxy import HEARTBEAT, TemporalProxy, heartbeat_of_the_first
from tests.support.raw_guest import RawGuest, raw_guest
from tests.support.store_kinds import KINDS, READS, REQUESTS, of_kind
from tests.support.waiting import until
from tests.support.writing import numbers, put

from agentvisor.core.errors import Fenced, PermissionRefused
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.runs import Ending, RunStatus
from agentvisor.protocol.ticket import RunTicket
from agentvisor.protocol.v1.guest_pb2 import (
    AgentExited,
    AgentLog,
    AgentMessage,
    AgentStarted,
    AgentTask,
    FromAgent,
    FromGuest,
    StoreCall,
    StreamEvent,
    StreamEvents,
)
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

pytestmark = pytest.mark.flow

KEY = b"k" * 32


def test_every_kind_of_request_has_its_row() -> None:
    assert REQUESTS.keys() == KINDS
    assert {kind: one.WhichOneof("kind") for kind, one in REQUESTS.items()} == {kind: kind for kind in KINDS}


async def codes(guest: RawGuest, ticket: str, thread_id: str = "") -> dict[str, str]:
    """What an agent is answered, for every kind of request."""
    return {kind: (await guest.ask(ticket, of_kind(kind, thread_id))).error.code for kind in sorted(KINDS)}


def all_are(code: str) -> dict[str, str]:
    return dict.fromkeys(sorted(KINDS), code)


# --- with a ticket of this host: another thread, an attempt that has lost its run, a run that has ended ---------------


async def test_another_thread_is_refused_to_every_kind_of_request(temporal: str, queue: str, tmp_path: Path) -> None:
    thread_id, other = new_thread(), new_thread()
    async with raw_guest(tmp_path) as guest, engine_host(temporal, queue, guests=guest) as host:  # type: ignore[arg-type]
        await host.call(other, put(0))
        await host.start_run(thread_id, "agent")
        ticket = await guest.ticket(0)
        assert await codes(guest, ticket, other) == all_are(PermissionRefused.code)
        assert numbers(await whole(host.threads, other)) == {0}
        # It is the thread that was refused, not the request.
        assert (await guest.ask(ticket, of_kind("put", thread_id))).WhichOneof("kind") == "stored"
        assert numbers(await whole(host.threads, thread_id)) == {77}


async def test_an_attempt_that_has_lost_its_run_is_refused_every_kind_of_request_and_its_result(
    temporal: str, proxy: TemporalProxy, queue: str, tmp_path: Path
) -> None:
    thread_id = new_thread()
    knobs = Knobs(heartbeat_timeout=1.2)
    async with (
        raw_guest(tmp_path / "old") as old,
        raw_guest(tmp_path / "new") as new,
        engine_host(temporal, queue, name="other", knobs=knobs, role=Role.WORKFLOWS) as other,
    ):
        async with engine_host(
            proxy.address, queue, name="victim", knobs=knobs, role=Role.ATTEMPTS, guests=old  # type: ignore[arg-type]
        ) as victim:  # fmt: skip
            run_id = await other.start_run(thread_id, "agent")
            first = await old.ticket(0)
            assert (await old.ask(first, put(0))).WhichOneof("kind") == "stored"
            journal = victim.live(thread_id).journal
            silent = proxy.refuse(HEARTBEAT)
            async with engine_host(
                temporal, queue, name="heir", knobs=knobs, role=Role.ATTEMPTS, guests=new  # type: ignore[arg-type]
            ) as heir:  # fmt: skip
                second = await new.ticket(0)
                silent.lift()
                await until(lambda: journal.is_fenced)
                # The agent of the first attempt, which nothing can kill, goes on as if nothing had happened.
                assert await codes(old, first) == all_are(Fenced.code)
                await old.say(FromAgent(events=StreamEvents(events=[StreamEvent(mode="custom", data=b"1")])), first)
                await old.complete(first)
                await new.ask(second, put(1))
                await new.complete(second, b'"mine"')
                run = await asyncio.wait_for(heir.threads.wait_run(thread_id, run_id), 20)
        assert (run.status, run.output) == (RunStatus.SUCCESS, b'"mine"')
        # The silent host may take the second attempt, too, and lose it the same way, before its heir is there.
        *lost, last = [one.ending for one in run.attempts]
        assert (set(lost), last) == ({Ending.HOST_GONE}, Ending.COMPLETED)
        assert numbers(await whole(other.threads, thread_id)) == {0, 1}


async def test_a_run_that_has_ended_is_closed_to_every_kind_of_request(
    temporal: str, queue: str, tmp_path: Path
) -> None:
    thread_id = new_thread()
    async with raw_guest(tmp_path) as guest, engine_host(temporal, queue, guests=guest) as host:  # type: ignore[arg-type]
        run_id = await host.start_run(thread_id, "agent")
        ticket = await guest.ticket(0)
        await guest.ask(ticket, put(0))
        # The run ends, its process does not.
        await host.threads.cancel_run(thread_id, run_id)
        assert (await host.threads.wait_run(thread_id, run_id)).status is RunStatus.INTERRUPTED
        assert await codes(guest, ticket) == all_are(Fenced.code)
        assert numbers(await whole(host.threads, thread_id)) == {0}


async def test_an_older_attempt_in_the_same_guest_is_refused(
    temporal: str, proxy: TemporalProxy, queue: str, tmp_path: Path
) -> None:
    thread_id, knobs = new_thread(), Knobs(heartbeat_timeout=1.2)
    async with (
        raw_guest(tmp_path) as guest,
        engine_host(temporal, queue, name="other", knobs=knobs, role=Role.WORKFLOWS) as other,
        engine_host(
            proxy.address, queue, name="victim", knobs=knobs, role=Role.ATTEMPTS, guests=guest  # type: ignore[arg-type]
        ),
    ):  # fmt: skip
        await other.start_run(thread_id, "agent")
        first = await guest.ticket(0)
        await guest.ask(first, put(0))
        silent = proxy.refuse(HEARTBEAT, matches=heartbeat_of_the_first())
        second = await guest.ticket(1)
        silent.lift()
        assert first != second
        assert await codes(guest, first) == all_are(Fenced.code)
        assert (await guest.ask(second, put(1))).WhichOneof("kind") == "stored"
        assert numbers(await whole(other.threads, thread_id)) == {0, 1}


# --- with a ticket that is none, or not for an agent that lives in this guest -----------------------------------------


class Deaf:
    """Notes what reaches it; nothing should."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    async def call(self, request: StoreRequest) -> StoreReply:
        self.heard.append(request)
        return StoreReply()

    def events(self, events: StreamEvents) -> None:
        self.heard.append(events)

    def log(self, stderr: bool, lines: list[str], dropped: int) -> None:  # noqa: FBT001 - the handler's contract
        self.heard.append(lines)


def task(thread: str = "t", run: str = "r", attempt: int = 1) -> AgentTask:
    return AgentTask(thread_id=thread, run_id=run, attempt=attempt)


def ticket_of(thread: str = "t", run: str = "r", attempt: int = 1, key: bytes = KEY) -> str:
    return RunTicket(ThreadId(thread), RunId(run), attempt).signed(key)


FORGED = {
    "nothing": "",
    "garbage": "garbage",
    "half a ticket": ticket_of().partition(".")[0] + ".",
    "another host's": ticket_of(key=b"x" * 32),
    "another thread's": ticket_of(thread="other"),
    "another run's": ticket_of(run="other"),
    "the next attempt's": ticket_of(attempt=2),
    "an ended attempt's": ticket_of(run="ended"),
    "one with another's signature": ticket_of(thread="other").partition(".")[0] + "." + ticket_of().partition(".")[2],
}


def sayings(ticket: str) -> list[FromGuest]:
    """Everything that a guest can say of an agent."""
    calls = [FromAgent(call=StoreCall(id=1, request=of_kind(kind))) for kind in sorted(KINDS)]
    events = FromAgent(events=StreamEvents(events=[StreamEvent(mode="values", data=b"{}")]))
    return [
        *(FromGuest(message=AgentMessage(ticket=ticket, message=one)) for one in (*calls, events)),
        FromGuest(started=AgentStarted(ticket=ticket, pid=7)),
        FromGuest(log=AgentLog(ticket=ticket, lines=["late"])),
        FromGuest(exited=AgentExited(ticket=ticket, kind=AgentExited.KIND_EXITED)),
    ]


def test_everything_that_a_guest_can_say_of_an_agent_is_tried() -> None:
    tried = {one.WhichOneof("kind") for one in sayings("x")}
    assert tried == {one.name for one in FromGuest.DESCRIPTOR.oneofs_by_name["kind"].fields} - {"hello", "heartbeat"}


@pytest.mark.parametrize("which", FORGED)
async def test_a_ticket_that_is_not_an_agents_here_ends_the_stream_whatever_comes_with_it(
    which: str, tmp_path: Path
) -> None:
    async def refuses(number: int, message: FromGuest) -> None:
        ended, alive = Deaf(), Deaf()
        async with raw_guest(tmp_path / str(number)) as guest:
            over = await guest.start_agent("raw", task(run="ended"), ended)
            await guest.write(FromGuest(exited=AgentExited(ticket=guest.tickets[0], kind=AgentExited.KIND_EXITED)))
            await asyncio.wait_for(over.ended, 5)
            agent = await guest.start_agent("raw", task(), alive)
            await guest.write(message)
            assert await guest.refused() == grpc.StatusCode.PERMISSION_DENIED, message
            # Such a guest is not what it was: it ends, with all that is in it.
            await asyncio.wait_for(agent.ended, 5)
            assert (ended.heard, alive.heard) == ([], [])

    for number, message in enumerate(sayings(FORGED[which])):
        await refuses(number, message)


@pytest.mark.parametrize("whose", ["nobody's", "another guest's"])
async def test_a_stream_is_not_opened_by_a_token_that_is_not_this_guests(whose: str, tmp_path: Path) -> None:
    async with raw_guest(tmp_path / "mine") as mine, raw_guest(tmp_path / "another") as another:
        stranger = RawGuest(tmp_path / "stranger")
        stranger.setup.CopyFrom(mine.setup)
        stranger.setup.token = b"" if whose == "nobody's" else another.setup.token
        speaking = asyncio.create_task(stranger.live())
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await asyncio.wait_for(speaking, 10)
        assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
        # Who was let in stays.
        agent = asyncio.create_task(mine.start_agent("raw", task(), Deaf()))
        await mine.ticket(0)
        await asyncio.wait_for(agent, 5)


# --- from outside any guest -------------------------------------------------------------------------------------------


async def test_a_session_that_was_lost_is_closed_to_every_kind_of_request(temporal: str, queue: str) -> None:
    thread_id = new_thread()
    async with engine_host(temporal, queue) as host:
        await host.call(thread_id, put(0))
        lost = host.live(thread_id)
        await end_session(host, thread_id)
        answers = {kind: (await lost.call(of_kind(kind))).error.code for kind in sorted(KINDS)}
        assert answers == all_are(Fenced.code)
        assert numbers(await whole(host.threads, thread_id)) == {0}


BUSY = frozenset({"put", "put_writes", "put_part", "project", "prune", "delete_thread", "change_thread_state"})
"""Outside, writing beside a run is refused. The other kinds read, or do nothing where there is nothing of them."""


async def test_beside_a_run_nothing_is_written_from_outside(temporal: str, queue: str) -> None:
    thread_id, agent = new_thread(), Guided()
    async with engine_host(temporal, queue, guests=agent.guests) as host:
        await host.start_run(thread_id, "agent")
        await agent.ready.wait()
        await agent.now.call(put(0))
        before = await whole(host.threads, thread_id)
        for kind in sorted(KINDS):
            reply = await host.sessions.call(thread_id, of_kind(kind, thread_id))
            if kind in READS or kind in BUSY:
                assert (reply.error.code == "conflict") is (kind in BUSY), kind
        after = await whole(host.threads, thread_id)
        assert (numbers(after), after.revision) == (numbers(before), before.revision)
        await agent.now.call(put(1))
        agent.leave.set()


async def end_session(host: EngineHost, thread_id: ThreadId) -> None:
    live = host.live(thread_id)
    live.stopping.set()
    await until(lambda: live.journal.is_fenced)
