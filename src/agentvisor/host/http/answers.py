"""Which interrupts a run answers: told before the run is accepted, and refused where that is none, or not clear."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import cast

from pydantic import JsonValue

from agentvisor.core import answering, asking
from agentvisor.core.errors import Conflict
from agentvisor.core.thread import Thread
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.host.http.open_interrupts import Look

_LIKE_ID = re.compile(
    r"[0-9a-f]{32}"  # LangGraph's, and those of plain agents
    r"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(adk|call|toolu|tooluse)[-_][0-9A-Za-z_-]{6,}"
    r"|v[0-9]+:.+"  # Strands'
)
"""Names of interrupts: an object with such keys is never a scalar answer that happens to be an object."""


def answered_by(look: Look, resume: JsonValue) -> list[str]:
    """The interrupts that a run with this resume value answers.

    Empty where nobody can tell: a graph may have stopped at a breakpoint, a run may be about to ask. `Conflict` names
    what waits, where an answer is for what does not wait, or could be for several.
    """
    thread = look.thread
    if isinstance(resume, dict) and resume and _is_by_id(look, resume):
        unknown = [one for one in resume if one not in look.open]
        if unknown:
            raise not_waiting(look, unknown[0])
        return list(resume)
    match list(look.open):
        case [only]:
            return [only]
        case []:
            _check_unclear(thread)
            return []
        case several:
            raise Conflict(
                f"{len(several)} interrupts wait: answer by id, as {{id: answer}}: {answering.listed(several)}",
                interrupts=_ids(several),
            )


def _is_by_id(look: Look, resume: dict[str, JsonValue]) -> bool:
    store = look.thread.store
    past = {one for run in look.thread.runs.values() for one in run.spec.answers} | {
        one for asks in asking.of_all(store) for one in asks.interrupts.closed
    }
    return any(one in look.open for one in resume) or all(one in past or _LIKE_ID.fullmatch(one) for one in resume)


def not_waiting(look: Look, interrupt_id: str) -> Conflict:
    """The refusal of an answer to it, which says what waits instead."""
    by = answering.taken(look.thread.runs).get(interrupt_id)
    what = f"was answered already, by run {by}" if by else "does not wait for an answer (any more)"
    waits = f"; what waits: {answering.listed(look.open)}" if look.open else "; nothing waits"
    return Conflict(
        f"interrupt {interrupt_id[:200]} {what}{waits}", interrupt_id=interrupt_id[:200], interrupts=_ids(look.open)
    )


def _check_unclear(thread: Thread) -> None:
    taken = answering.taken(thread.runs)
    if taken:
        (interrupt_id, run_id), *_ = taken.items()
        raise Conflict(
            f"interrupt {interrupt_id[:200]} was answered already, by run {run_id}, and nothing else waits",
            interrupt_id=interrupt_id[:200],
            run_id=run_id,
        )
    last = thread.last_agent_run
    # After an error or an interruption the graph may have stopped before a node, which a resume goes on from.
    paused = last is not None and last.paused
    if thread.status is ThreadStatus.IDLE or (thread.status is ThreadStatus.ERROR and not paused):
        raise Conflict(
            f"the run brings an answer (command.resume), and nothing waits for one on thread {thread.thread_id}"
        )


def _ids(ids: Iterable[str]) -> str:
    return ",".join(ids)[:1000]


def resume_of(command: object) -> tuple[bool, JsonValue]:
    """Whether a command brings an answer, and which."""
    if not isinstance(command, dict) or "resume" not in command:
        return False, None
    return True, cast("JsonValue", command["resume"])
