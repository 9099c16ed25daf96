"""The fault matrix: for each hop and each fault how it is made on real parts, or why there is no such thing."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from tests.faults.fault_scene import HEARTBEAT_TIMEOUT, HitRun, send, stand_still, stutter
from tests.support.proxy import COMPLETED, HEARTBEAT, SIGNAL
from tests.support.waiting import until


class Hop(Enum):
    """Where a fault is made."""

    CLIENT_HOST = "client -> host (HTTP)"
    HOST_TEMPORAL = "host -> Temporal (gRPC)"
    AGENT_SUPERVISOR = "agent <-> supervisor (socketpair)"
    SUPERVISOR_HOST = "supervisor <-> host (stream)"
    TEMPORAL = "Temporal"
    HOST = "host"
    GUEST = "guest"
    AGENT = "agent"


class Fault(Enum):
    """What is done there."""

    KILL = "kill"
    HANG = "hang"
    LOST_REPLY = "lost reply"
    DOUBLE_DELIVERY = "double delivery"
    DELAY = "delay"
    RESTART = "restart"


Make = Callable[[HitRun], Awaitable[object]]

UNDISTURBED = ("completed",)
LOST_HOST = ("host_gone", "completed")


@dataclass(frozen=True)
class Cell:
    """How the fault is made, and how the attempts of the run that it hits end."""

    make: Make
    endings: tuple[tuple[str, ...], ...]
    runs: int = 1
    """On the thread's record: two where the caller's request came twice, which no id tells apart."""


@dataclass(frozen=True)
class NoSuchThing:
    why: str


# --- client -> host --------------------------------------------------------------------------------------------------


async def client_cut(run: HitRun) -> None:
    run.scene.http.cuts_requests = True
    await run.start()


async def client_waits(run: HitRun) -> None:
    line = run.scene.http
    line.hang()
    starting = asyncio.create_task(run.start())
    await asyncio.sleep(1)
    line.mend()
    await starting


async def client_hears_nothing(run: HitRun) -> None:
    await run.scene.client.create_thread(run.thread)
    line = run.scene.http
    line.cut()
    line.loses_replies = True
    lost = line.lost
    starting = asyncio.create_task(run.start())
    await until(lambda: line.lost > lost)
    # The thread is there already: with its next reply the run is accepted, and nobody is told.
    line.mend()
    line.cut()
    await starting


async def client_is_heard_twice(run: HitRun) -> None:
    await run.scene.client.create_thread(run.thread)
    line = run.scene.http
    line.cut()
    line.doubles = True
    await run.start()

    async def twice() -> bool:
        return await run.runs() == 2

    await until(twice)
    line.mend()
    line.cut()


async def client_is_slow(run: HitRun) -> None:
    run.scene.http.delay = 0.2
    await run.middle()


async def client_line_restarts(run: HitRun) -> None:
    await run.middle()
    line = run.scene.http
    line.refuses = True
    line.cut()
    await asyncio.sleep(0.5)
    line.mend()


# --- host -> Temporal ------------------------------------------------------------------------------------------------


async def temporal_is_out_of_reach(run: HitRun) -> None:
    await run.middle()
    run.scene.proxy.cut()
    await run.until_waiting()
    await asyncio.sleep(1.5 * HEARTBEAT_TIMEOUT)
    run.scene.proxy.mend()


async def temporal_does_not_answer_in_time(run: HitRun) -> None:
    await run.middle()
    held = run.scene.proxy.hold_reply(HEARTBEAT, times=1_000)
    refused = run.scene.proxy.hold(HEARTBEAT, times=1_000)
    await asyncio.sleep(2 * HEARTBEAT_TIMEOUT)
    refused.lift()
    held.lift()
    held.released.set()
    # What was held back comes now, when its attempt is over.
    await run.scene.proxy.deliver_held()


async def temporals_replies_are_lost(run: HitRun) -> None:
    await run.middle()
    lost = [run.scene.proxy.drop_reply(method) for method in (HEARTBEAT, SIGNAL, COMPLETED)]
    await until(lambda: all(one.caught for one in lost), seconds=30)


async def temporal_hears_twice(run: HitRun) -> None:
    proxy = run.scene.proxy
    twice = [proxy.twice(method, times=3) for method in (SIGNAL, COMPLETED)]
    await run.middle()
    late = proxy.hold(HEARTBEAT)
    await late.until_caught()
    await proxy.deliver_held()
    await until(lambda: all(one.caught for one in twice), seconds=30)


async def temporal_is_far_away(run: HitRun) -> None:
    run.scene.proxy.delay = 0.1
    await run.endings()


async def line_to_temporal_restarts(run: HitRun) -> None:
    await run.middle()
    await run.scene.proxy.restart(after=0.5)


# --- agent <-> supervisor --------------------------------------------------------------------------------------------


async def supervisor_does_not_read(run: HitRun) -> None:
    await run.middle()
    await stand_still(run.guest[1], seconds=1.5)


async def agent_does_not_hear(run: HitRun) -> None:
    run.tell("lost")
    await run.start()


async def agent_sends_twice(run: HitRun) -> None:
    run.tell("twice")
    await run.start()


async def supervisor_is_slow(run: HitRun) -> None:
    await run.middle()
    await stutter(run.guest[1])


# --- supervisor <-> host ---------------------------------------------------------------------------------------------


async def stream_is_cut(run: HitRun) -> None:
    await run.middle()
    run.line.cut()


async def stream_hangs(run: HitRun) -> None:
    await run.middle()
    line = run.line
    line.hang()
    await run.until_attempt(2)
    line.mend()


async def stream_loses_replies(run: HitRun) -> None:
    await run.middle()
    line = run.line
    line.loses_replies = True
    await run.until_unheard()
    line.cut()


async def stream_is_slow(run: HitRun) -> None:
    await run.middle()
    run.line.delay = 0.1
    await run.endings()


async def stream_is_cut_and_its_successor(run: HitRun) -> None:
    await run.middle()
    run.line.cut()
    await run.middle(2)
    run.line.cut()


# --- Temporal --------------------------------------------------------------------------------------------------------


async def temporal_is_killed(run: HitRun) -> None:
    await run.middle()
    run.scene.temporal.kill()
    await run.scene.temporal.start()


async def temporal_stands_still(run: HitRun) -> None:
    await run.middle()
    await stand_still(run.scene.temporal.pid, seconds=1.2)


async def temporal_dies_with_its_answer(run: HitRun) -> None:
    await run.middle()
    lost = run.scene.proxy.drop_reply(HEARTBEAT)
    await lost.until_caught()
    run.scene.temporal.kill()
    await run.scene.temporal.start()


async def temporal_hands_a_step_out_again(run: HitRun) -> None:
    taken = run.scene.proxy.drop_reply("PollWorkflowTaskQueue", matches=bool)
    await run.start()
    await taken.until_caught(seconds=30)


async def temporal_is_slow(run: HitRun) -> None:
    await run.middle()
    await stutter(run.scene.temporal.pid)


async def temporal_restarts(run: HitRun) -> None:
    await run.middle()
    run.scene.temporal.stop()
    await run.scene.temporal.start()


# --- host ------------------------------------------------------------------------------------------------------------


async def host_is_killed(run: HitRun) -> None:
    await run.middle()
    # With a commit that does not get through: nobody may have been told that it did.
    run.scene.proxy.cut()
    await run.until_waiting()
    run.host.send(signal.SIGKILL)
    run.scene.proxy.mend()


async def host_stands_still(run: HitRun) -> None:
    await run.middle()
    frozen = run.host.pid
    send(signal.SIGSTOP, frozen)
    try:
        await run.until_attempt(2)
    finally:
        send(signal.SIGCONT, frozen)


async def host_dies_with_its_answer(run: HitRun) -> None:
    await run.middle()
    held = run.scene.proxy.hold_reply(HEARTBEAT)
    await held.until_caught()
    run.host.send(signal.SIGKILL)
    held.released.set()


async def host_is_slow(run: HitRun) -> None:
    await run.middle()
    await stutter(run.host.pid)


async def host_restarts(run: HitRun) -> None:
    await run.middle()
    run.host.send(signal.SIGTERM)


# --- guest -----------------------------------------------------------------------------------------------------------


async def guest_is_killed(run: HitRun) -> None:
    await run.middle()
    send(signal.SIGKILL, run.guest[1])


async def guest_stands_still(run: HitRun) -> None:
    await run.middle()
    send(signal.SIGSTOP, run.pid, *run.guest)
    await run.until_attempt(2)


async def guest_dies_with_the_answer(run: HitRun) -> None:
    await run.middle()
    supervisor, line = run.guest[1], run.line
    line.flows_down.clear()
    await run.until_unheard()
    send(signal.SIGKILL, supervisor)
    line.mend()


async def guest_is_slow(run: HitRun) -> None:
    await run.middle()
    await stutter(*run.guest)


async def guest_restarts(run: HitRun) -> None:
    await run.middle()
    send(signal.SIGTERM, run.guest[1])


# --- agent -----------------------------------------------------------------------------------------------------------


async def agent_is_killed(run: HitRun) -> None:
    await run.middle()
    send(signal.SIGKILL, run.pid)


async def agent_stands_still(run: HitRun) -> None:
    await run.middle()
    await stand_still(run.pid, seconds=1.5)


async def agent_dies_with_the_answer(run: HitRun) -> None:
    await run.middle()
    line = run.line
    line.flows_down.clear()
    await run.until_unheard()
    send(signal.SIGKILL, run.pid)
    line.mend()


async def agent_is_slow(run: HitRun) -> None:
    await run.middle()
    await stutter(run.pid)


async def agent_restarts(run: HitRun) -> None:
    await run.middle()
    send(signal.SIGTERM, run.pid)


_SAME = (UNDISTURBED,)
_SAME_OR_LOST = (UNDISTURBED, LOST_HOST)
_GUEST = (("guest_gone", "completed"),)
_SILENT = (("guest_unresponsive", "completed"), ("guest_gone", "completed"))
_AGENT = (("agent_signal", "completed"),)
_A_PROCESS = "a process is no line: what it hears or says twice is a matter of the lines at its ends"
_SOCKETPAIR = "a socketpair is made with two processes and breaks with one of them: see the rows of guest and agent"

MATRIX: dict[tuple[Hop, Fault], Cell | NoSuchThing] = {
    (Hop.CLIENT_HOST, Fault.KILL): Cell(client_cut, _SAME),
    (Hop.CLIENT_HOST, Fault.HANG): Cell(client_waits, _SAME),
    (Hop.CLIENT_HOST, Fault.LOST_REPLY): Cell(client_hears_nothing, _SAME),
    (Hop.CLIENT_HOST, Fault.DOUBLE_DELIVERY): Cell(client_is_heard_twice, _SAME, runs=2),
    (Hop.CLIENT_HOST, Fault.DELAY): Cell(client_is_slow, _SAME),
    (Hop.CLIENT_HOST, Fault.RESTART): Cell(client_line_restarts, _SAME),
    (Hop.HOST_TEMPORAL, Fault.KILL): Cell(temporal_is_out_of_reach, (LOST_HOST,)),
    (Hop.HOST_TEMPORAL, Fault.HANG): Cell(temporal_does_not_answer_in_time, (LOST_HOST,)),
    (Hop.HOST_TEMPORAL, Fault.LOST_REPLY): Cell(temporals_replies_are_lost, _SAME),
    (Hop.HOST_TEMPORAL, Fault.DOUBLE_DELIVERY): Cell(temporal_hears_twice, _SAME),
    (Hop.HOST_TEMPORAL, Fault.DELAY): Cell(temporal_is_far_away, _SAME),
    (Hop.HOST_TEMPORAL, Fault.RESTART): Cell(line_to_temporal_restarts, _SAME_OR_LOST),
    (Hop.AGENT_SUPERVISOR, Fault.KILL): NoSuchThing(_SOCKETPAIR),
    (Hop.AGENT_SUPERVISOR, Fault.HANG): Cell(supervisor_does_not_read, _SAME),
    (Hop.AGENT_SUPERVISOR, Fault.LOST_REPLY): Cell(agent_does_not_hear, _AGENT),
    (Hop.AGENT_SUPERVISOR, Fault.DOUBLE_DELIVERY): Cell(agent_sends_twice, _SAME),
    (Hop.AGENT_SUPERVISOR, Fault.DELAY): Cell(supervisor_is_slow, _SAME),
    (Hop.AGENT_SUPERVISOR, Fault.RESTART): NoSuchThing(_SOCKETPAIR),
    (Hop.SUPERVISOR_HOST, Fault.KILL): Cell(stream_is_cut, _GUEST),
    (Hop.SUPERVISOR_HOST, Fault.HANG): Cell(stream_hangs, _SILENT),
    (Hop.SUPERVISOR_HOST, Fault.LOST_REPLY): Cell(stream_loses_replies, _GUEST),
    (Hop.SUPERVISOR_HOST, Fault.DOUBLE_DELIVERY): NoSuchThing(
        "the stream is one HTTP/2 stream on one connection, which brings each byte once and in order; its loss ends "
        "the guest, so nothing is ever sent again on another"
    ),
    (Hop.SUPERVISOR_HOST, Fault.DELAY): Cell(stream_is_slow, _SAME),
    (Hop.SUPERVISOR_HOST, Fault.RESTART): Cell(
        stream_is_cut_and_its_successor, (("guest_gone", "guest_gone", "completed"),)
    ),
    (Hop.TEMPORAL, Fault.KILL): Cell(temporal_is_killed, _SAME_OR_LOST),
    (Hop.TEMPORAL, Fault.HANG): Cell(temporal_stands_still, _SAME_OR_LOST),
    (Hop.TEMPORAL, Fault.LOST_REPLY): Cell(temporal_dies_with_its_answer, _SAME_OR_LOST),
    (Hop.TEMPORAL, Fault.DOUBLE_DELIVERY): Cell(temporal_hands_a_step_out_again, _SAME),
    (Hop.TEMPORAL, Fault.DELAY): Cell(temporal_is_slow, _SAME_OR_LOST),
    (Hop.TEMPORAL, Fault.RESTART): Cell(temporal_restarts, _SAME_OR_LOST),
    (Hop.HOST, Fault.KILL): Cell(host_is_killed, (LOST_HOST,)),
    (Hop.HOST, Fault.HANG): Cell(host_stands_still, (LOST_HOST,)),
    (Hop.HOST, Fault.LOST_REPLY): Cell(host_dies_with_its_answer, (LOST_HOST,)),
    (Hop.HOST, Fault.DOUBLE_DELIVERY): NoSuchThing(_A_PROCESS),
    (Hop.HOST, Fault.DELAY): Cell(host_is_slow, _SAME_OR_LOST),
    (Hop.HOST, Fault.RESTART): Cell(host_restarts, (("host_stopped", "completed"),)),
    (Hop.GUEST, Fault.KILL): Cell(guest_is_killed, _GUEST),
    (Hop.GUEST, Fault.HANG): Cell(guest_stands_still, _SILENT),
    (Hop.GUEST, Fault.LOST_REPLY): Cell(guest_dies_with_the_answer, _GUEST),
    (Hop.GUEST, Fault.DOUBLE_DELIVERY): NoSuchThing(_A_PROCESS),
    (Hop.GUEST, Fault.DELAY): Cell(guest_is_slow, _SAME),
    (Hop.GUEST, Fault.RESTART): Cell(guest_restarts, _GUEST),
    (Hop.AGENT, Fault.KILL): Cell(agent_is_killed, _AGENT),
    (Hop.AGENT, Fault.HANG): Cell(agent_stands_still, _SAME),
    (Hop.AGENT, Fault.LOST_REPLY): Cell(agent_dies_with_the_answer, _AGENT),
    (Hop.AGENT, Fault.DOUBLE_DELIVERY): NoSuchThing(_A_PROCESS),
    (Hop.AGENT, Fault.DELAY): Cell(agent_is_slow, _SAME),
    (Hop.AGENT, Fault.RESTART): Cell(agent_restarts, _AGENT),
}
"""Total over hops and faults."""
