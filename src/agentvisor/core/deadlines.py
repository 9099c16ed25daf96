"""What becomes of a thread's questions that nobody answers: at their deadlines, or where they are given up."""

from __future__ import annotations

from agentvisor.core import answering
from agentvisor.core.errors import Conflict
from agentvisor.core.ids import ROOT, RunId
from agentvisor.core.interrupts import Interrupt
from agentvisor.core.runs import Run, RunStatus
from agentvisor.core.thread import Thread


def next_deadline_ms(thread: Thread) -> int | None:
    """When the first of what waits is overdue."""
    waiting = answering.with_deadline(thread.store, thread.runs)
    return min((one.terms.deadline_ms for one in waiting), default=None)


def overdue(thread: Thread, now_ms: int) -> list[Interrupt]:
    """What has waited too long; decided between runs alone: a run may be about to take an answer."""
    waiting = answering.with_deadline(thread.store, thread.runs)
    return [one for one in waiting if one.terms.deadline_ms <= now_ms]


def asking_run(thread: Thread, interrupt: Interrupt) -> Run | None:
    """The run that asked; where that is not known any more, the thread's last."""
    asked = thread.runs.get(RunId(interrupt.run_id))
    return asked if asked is not None and asked.is_agent else thread.last_agent_run


def expire(thread: Thread, late: list[Interrupt], now_ms: int) -> None:
    """Nobody answered: what waits is closed, and the run that waited has ended with a timeout."""
    last = thread.last_agent_run
    waited = last is not None and last.paused
    close_interrupts(thread, now_ms)
    if last is None or not waited:
        return  # it has failed or was cancelled since, which says more
    last.status, last.error_type = RunStatus.TIMEOUT, "InterruptExpired"
    last.error_message = (
        f"nobody answered {answering.listed(one.id for one in late)} before the deadline: start a new run with "
        "new input"
    )


def close_interrupts(thread: Thread, now_ms: int) -> None:
    """Give up all that waits. No run is active."""
    waiting = [one.id for one in thread.store.questions.waiting]
    thread.store.questions.clear()
    thread.store.interrupts.close(waiting, thread.store.heads.get(ROOT, ""))
    last = thread.last_agent_run
    if last is not None:
        last.paused = False
        last.updated_at_ms = now_ms
    thread.touch(now_ms)


def check_close_interrupts(thread: Thread) -> None:
    """`Conflict` where a run may be about to answer what waits, or to ask."""
    busy = next((run for run in thread.runs.values() if not run.status.terminal and run.is_agent), None)
    if busy is not None:
        raise Conflict(
            f"thread {thread.thread_id} is busy with run {busy.run_id}: wait for it or cancel it, then give up what "
            "waits",
            run_id=busy.run_id,
        )
