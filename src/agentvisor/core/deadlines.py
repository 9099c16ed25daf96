"""What becomes of a thread's questions that nobody answers: at their deadlines, or where they are given up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agentvisor.core import answering, asking
from agentvisor.core.errors import Conflict
from agentvisor.core.ids import RunId
from agentvisor.core.interrupts import Interrupt
from agentvisor.core.runs import Run, RunStatus
from agentvisor.core.thread import Thread


@dataclass(frozen=True, slots=True)
class Overdue:
    """What one agent has waited for too long."""

    agent: str
    interrupts: tuple[Interrupt, ...]

    @property
    def has_defaults(self) -> bool:
        """Whether each of them has an answer that is given now."""
        return all(one.terms.default_answer is not None for one in self.interrupts)


def next_deadline_ms(thread: Thread) -> int | None:
    """When the first of what waits is overdue."""
    waiting = answering.with_deadline(thread.store, thread.runs)
    return min((one.terms.deadline_ms for _, one in waiting), default=None)


def overdue(thread: Thread, now_ms: int) -> Overdue | None:
    """What has waited too long, of one agent; decided between runs alone: a run may be about to take an answer."""
    found: dict[str, list[Interrupt]] = {}
    for agent, one in answering.with_deadline(thread.store, thread.runs):
        if one.terms.deadline_ms <= now_ms:
            found.setdefault(agent, []).append(one)
    return next((Overdue(agent, tuple(late)) for agent, late in found.items()), None)


def asking_run(thread: Thread, interrupt: Interrupt) -> Run | None:
    """The run that asked; where that is not known any more, the last one of the agent that did, or of the thread."""
    asked = thread.runs.get(RunId(interrupt.run_id))
    if asked is not None and asked.is_agent:
        return asked
    asks = asking.asker(thread.store, interrupt.id)
    return last_run_of(thread, asks.agent if asks is not None else "") or thread.last_agent_run


def last_run_of(thread: Thread, agent: str) -> Run | None:
    """An agent's last run that has ended."""
    return next((one for one in reversed(thread.ended_runs()) if one.is_agent and one.spec.agent == agent), None)


def expire(thread: Thread, late: Overdue, now_ms: int, *, refused: str = "") -> None:
    """Nobody answered: what the agent asks is closed, and its run that waited has ended with a timeout.

    `refused`: why the run with the default answers, which there are, was not accepted.
    """
    last = last_run_of(thread, late.agent) if late.agent else thread.last_agent_run
    waited = last is not None and last.paused
    for asks in asking.of_all(thread.store):
        if asks.agent == late.agent:
            asking.give_up(thread.store, asks)
    _have_ended([] if last is None else [last], now_ms)
    thread.touch(now_ms)
    if last is None or not waited:
        return  # it has failed or was cancelled since, which says more
    last.status, last.error_type = RunStatus.TIMEOUT, "InterruptExpired"
    named = answering.listed(one.id for one in late.interrupts)
    defaults = f", and the default answer could not be given ({refused})" if refused else ""
    last.error_message = f"nobody answered {named} before the deadline{defaults}: start a new run with new input"


def close_interrupts(thread: Thread, now_ms: int) -> None:
    """Give up all that waits, whichever agent asks. No run is active."""
    for asks in asking.of_all(thread.store):
        asking.give_up(thread.store, asks)
    last = thread.last_agent_run
    of_others = [one for agent in thread.store.others if (one := last_run_of(thread, agent)) is not None]
    _have_ended([*of_others, *([last] if last is not None else [])], now_ms)
    thread.touch(now_ms)


def _have_ended(runs: Iterable[Run], now_ms: int) -> None:
    for run in runs:
        run.paused = False
        run.updated_at_ms = now_ms


def check_close_interrupts(thread: Thread) -> None:
    """`Conflict` where a run may be about to answer what waits, or to ask."""
    busy = next((run for run in thread.runs.values() if not run.status.terminal and run.is_agent), None)
    if busy is not None:
        raise Conflict(
            f"thread {thread.thread_id} is busy with run {busy.run_id}: wait for it or cancel it, then give up what "
            "waits",
            run_id=busy.run_id,
        )
