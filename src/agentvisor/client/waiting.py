"""What waits for an answer, as a framework's runner reports it; and the answers that a run brings.

For runners whose framework keeps its interrupts in a state of its own (Strands, ADK, CrewAI and others). Graphs and
plain agents have other ways: LangGraph's are in its checkpoints, a plain agent's are asked by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from agentvisor.client.operations import Operation, carry_out
from agentvisor.client.strict_json import dump
from agentvisor.client.transport import Transport
from agentvisor.core.errors import Conflict, InvalidInput
from agentvisor.protocol.metadata import Json
from agentvisor.protocol.v1.guest_pb2 import AgentTask
from agentvisor.protocol.v1.store_pb2 import (
    Interrupt,
    Interrupts,
    QuestionRequest,
    StillWaiting,
    StoreRequest,
    Terms,
)

OnDeadline = Literal["cancel", "answer"]

MOST_SECONDS = 10 * 366 * 86_400.0
"""A deadline further away is a mistake, as a rule a time in milliseconds."""


@dataclass(frozen=True)
class Waiting:
    """One thing that waits for an answer."""

    id: str
    """The framework's own, by which it is answered."""
    value: Json
    """What the person is shown."""
    kind: str = "question"
    belongs_to: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What it is about, as far as the framework knows: namespace, task, node, tool, tool_call_id, agent."""
    schema: Json | None = None
    """A JSON Schema of the answer, where that is known."""
    deadline_seconds: float | None = None
    """From now; None: it waits for as long as the thread lives. The same one reported again keeps its deadline."""
    on_deadline: OnDeadline = "cancel"
    """What becomes of it then: the thread's questions are closed and its run has timed out; or the default is given."""
    default_answer: Json = None


def report(channel: Transport, waiting: Sequence[Waiting], *, takes_input: bool) -> None:
    """Record what waits now, in the place of what was reported before; durable on return.

    Nothing waits where it is empty: so a runner says that its framework has forgotten what was given up.

    Args:
        channel: the run's way to its host.
        waiting: all that waits, each with an id of its own.
        takes_input: False: a run with new input is refused (409) while one waits, unless its caller gives it up
            (`"on_interrupt": "abandon"`), since it would lose or break what the framework holds.
    """
    told = Interrupts(reported=list(map(_message, waiting)), takes_input=takes_input)
    carry_out(_tell(QuestionRequest(report=told)), channel)


def answers_of(task: AgentTask) -> dict[str, Json]:
    """The answers that the run brings, by id; the same in every attempt of it.

    The host has checked that they waited when the run was accepted, and knows which one a scalar is for. `Conflict`
    where the run brings an answer and nothing waited for one.
    """
    spec = task.spec
    command: object = json.loads(spec.command) if spec.command else None
    if isinstance(command, dict) and (others := {"update", "goto"}.intersection(cast("dict[str, object]", command))):
        named = " and ".join(f"command.{one}" for one in sorted(others))
        raise InvalidInput(f"{named}: only a LangGraph graph can be updated, or sent to a node", field="command")
    if not isinstance(command, dict) or "resume" not in command:
        return {}
    resume = cast("Json", command["resume"])
    if not spec.answers:
        raise Conflict("the run brings an answer (command.resume), and nothing waited for one when it was accepted")
    return given(list(spec.answers), resume)


def given(ids: Sequence[str], resume: Json) -> dict[str, Json]:
    """The answers to these interrupts: each its own where they come by id, else the scalar for the one."""
    if isinstance(resume, dict) and resume and set(resume) == set(ids):
        return {one: resume[one] for one in ids}
    return dict.fromkeys(ids, resume)


def abandons(task: AgentTask) -> bool:
    """Whether open questions were given up, with this run's new input or before: the framework must forget them.

    True in every attempt until something is reported: then the framework has forgotten.
    """
    return task.forgets


def terms(schema: Json | None, deadline: float | None, on_deadline: OnDeadline, default_answer: Json) -> Terms | None:
    """What is sent of these; `InvalidInput` where they make no sense. None: there are none."""
    if on_deadline not in ("cancel", "answer"):
        raise InvalidInput(f'on_deadline is "cancel" or "answer", not {on_deadline!r}', field="on_deadline")
    if deadline is None and on_deadline == "answer":
        raise InvalidInput('on_deadline="answer" needs a deadline, in seconds', field="deadline")
    if default_answer is not None and on_deadline != "answer":
        raise InvalidInput('a default_answer is given where on_deadline="answer"', field="default_answer")
    if deadline is not None and not _is_time(deadline):
        raise InvalidInput(
            f"a deadline is a number of seconds from now, at most {MOST_SECONDS}, not {deadline!r}", field="deadline"
        )
    if schema is None and deadline is None:
        return None
    return Terms(
        schema=b"" if schema is None else dump(schema, "the schema"),
        deadline_after_ms=0 if deadline is None else max(1, int(deadline * 1000)),
        default_answer=dump(default_answer, "the default answer") if on_deadline == "answer" else None,
    )


def _is_time(deadline: object) -> bool:
    return isinstance(deadline, int | float) and not isinstance(deadline, bool) and 0 < deadline <= MOST_SECONDS


_noted: list[str] = []
"""What this process has noted: its run asks, or code of the agent has swallowed the pause."""


def has_notes(task: AgentTask) -> bool:
    """Whether terms are noted, of this run's interrupts or of those before."""
    return task.noted or bool(_noted)


def still_waiting(channel: Transport, ids: Iterable[str]) -> None:
    """Before a pause: of all that was noted these wait; the others' deadlines are forgotten. Durable on return."""
    carry_out(_tell(QuestionRequest(still_waiting=StillWaiting(ids=sorted(set(ids))))), channel)


def note(
    interrupt_id: str, *, kind: str, terms: Terms | None, belongs_to: Mapping[str, Json] | None = None
) -> Operation[None]:
    """Record what a framework's own record of its interrupt has no room for; the first one counts."""
    _noted.append(interrupt_id)
    about = dump(dict(belongs_to), "belongs_to") if belongs_to else b""
    return _tell(QuestionRequest(note=Interrupt(id=interrupt_id, kind=kind, belongs_to=about, terms=terms)))


def _message(one: Waiting) -> Interrupt:
    return Interrupt(
        id=one.id,
        kind=one.kind,
        value=dump(one.value, f"the value of interrupt {one.id}"),
        belongs_to=dump(dict(one.belongs_to), "belongs_to") if one.belongs_to else b"",
        terms=terms(one.schema, one.deadline_seconds, one.on_deadline, one.default_answer),
    )


def _tell(request: QuestionRequest) -> Operation[None]:
    yield StoreRequest(question=request)
