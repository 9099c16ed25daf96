"""What waits for an answer on a thread, of whichever framework, as one kind of record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agentvisor.core import answering, asking
from agentvisor.core.deadlines import asking_run
from agentvisor.core.ids import ROOT, RunId, ThreadId
from agentvisor.core.interrupts import NO_TERMS, Interrupt, Seen
from agentvisor.core.thread import Thread
from agentvisor.host.external.storage import Patience
from agentvisor.host.http.services import Services
from agentvisor.host.http.times import iso
from agentvisor.host.render_tasks import Task, tasks_of
from agentvisor.host.render_typed import Json, render

UNKNOWN_EFFECT = "effect_unknown"
"""Kind of the question about an effect whose outcome nobody knows (agentvisor.once)."""
_OF_EFFECTS: Json = {
    "anyOf": [
        {"type": "object", "required": ["done"]},
        {"type": "object", "required": ["not_done"], "properties": {"not_done": {"const": True}}},
    ]
}
_INTERRUPT = "__interrupt__"


@dataclass(frozen=True, slots=True)
class Open:
    """One that waits, and that nobody has answered yet."""

    interrupt: Interrupt
    value: Json
    belongs_to: dict[str, Json]
    in_graph: bool
    """Its checkpoint holds it."""


@dataclass(frozen=True, slots=True)
class Look:
    """A thread with what waits on it, by id."""

    thread: Thread
    open: dict[str, Open]

    @property
    def seen(self) -> Seen:
        """What the thread is told of this look."""
        last = self.thread.last_agent_run
        return Seen(
            frozenset(self.open),
            last.run_id if last is not None else answering.NO_RUN,
            last is None or last.status.terminal,
            self.thread.store.heads.get(ROOT, ""),
        )


async def look(services: Services, thread_id: ThreadId, *, patience: Patience | None = None) -> Look:
    """Read what waits, every acknowledged operation included. `NotFound`."""
    thread = await services.threads.get(thread_id)
    graph = await _of_graph(services, thread, patience)
    taken = answering.taken(thread.runs)
    found = {one.interrupt.id: one for one in (*graph, *_known(thread)) if one.interrupt.id not in taken}
    return Look(thread, found)


def _known(thread: Thread) -> Iterable[Open]:
    for one in answering.known(thread.store).values():
        belongs_to = render("json", one.belongs_to) if one.belongs_to else {}
        yield Open(one, render("json", one.value), belongs_to if isinstance(belongs_to, dict) else {}, in_graph=False)


async def _of_graph(services: Services, thread: Thread, patience: Patience | None) -> list[Open]:
    """Those in the writes under the root's current checkpoint; of its values, only what is asked is read."""
    head = thread.store.get(ROOT)
    if head is None:
        return []
    writes = [one for task in head.pending for one in task.writes if one.channel == _INTERRUPT]
    if not writes:
        return []
    keys = [one.key for one in writes if one.key is not None]
    blobs = await services.threads.blobs(thread.thread_id, keys, patience=patience) if keys else {}
    created_at, run_id = thread.state_updated_at_ms, head.checkpoint.run_id
    return [
        _in_graph(thread, task, asked, created_at, run_id)
        for task in tasks_of(thread.store, head, blobs)
        for asked in task.interrupts(live=True)
        if isinstance(asked, dict) and isinstance(asked.get("id"), str)
    ]


def _in_graph(thread: Thread, task: Task, asked: dict[str, Json], created_at_ms: int, run_id: str) -> Open:
    value, interrupt_id = asked.get("value"), str(asked["id"])
    noted = asking.noted(thread.store, interrupt_id)
    kind = UNKNOWN_EFFECT if isinstance(value, dict) and value.get("kind") == UNKNOWN_EFFECT else "question"
    interrupt = noted or Interrupt(interrupt_id, kind, b"", b"", NO_TERMS, created_at_ms, run_id)
    return Open(interrupt, value, {"namespace": "", "task": task.id, "node": task.name}, in_graph=True)


def agent_of(thread: Thread, one: Open) -> str | None:
    """The agent that asks, to which the answer goes; None where no run tells (a copy, a client outside)."""
    asks = asking.asker(thread.store, one.interrupt.id)
    if asks is not None and asks.agent:
        return asks.agent
    asked = thread.runs.get(RunId(one.interrupt.run_id))
    if asked is not None:
        return asked.spec.agent
    last = thread.last_agent_run
    return asking.graph_asker(thread.store) or (last.spec.agent if last is not None else None)


def interrupt_json(thread: Thread, one: Open) -> dict[str, Json]:
    """The record that the API shows of an interrupt."""
    interrupt, terms = one.interrupt, one.interrupt.terms
    asked = asking_run(thread, interrupt)
    shown: dict[str, Json] = {
        "id": interrupt.id,
        "thread_id": thread.thread_id,
        "run_id": interrupt.run_id or (asked.run_id if asked is not None else None),
        "agent": agent_of(thread, one),
        "kind": interrupt.kind,
        "value": one.value,
        "belongs_to": one.belongs_to,
        "schema": schema_of(interrupt),
        "created_at": iso(interrupt.created_at_ms),
        "deadline": iso(terms.deadline_ms) if terms.deadline_ms else None,
        "on_deadline": None,
    }
    if terms.deadline_ms:
        shown["on_deadline"] = "cancel" if terms.default_answer is None else "answer"
    if terms.default_answer is not None:
        shown["default_answer"] = render("json", terms.default_answer)
    return shown


def schema_of(interrupt: Interrupt) -> Json:
    """What an answer must look like, where that is known."""
    if interrupt.terms.schema:
        return render("json", interrupt.terms.schema)
    return _OF_EFFECTS if interrupt.kind == UNKNOWN_EFFECT else None
