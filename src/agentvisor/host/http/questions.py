"""What a thread knows to wait, shown as LangGraph's interrupts are: each is asked by a task of its own."""

from __future__ import annotations

from agentvisor.core import answering
from agentvisor.core.asking import of_all
from agentvisor.core.interrupts import Interrupt
from agentvisor.core.thread import Thread
from agentvisor.host.http.open_interrupts import schema_of
from agentvisor.host.http.times import iso
from agentvisor.host.render_typed import Json, render


def questions(thread: Thread) -> dict[str, Json]:
    """Those that wait for an answer, by the task that asks."""
    return {f"question:{one.id}": [_shown(one)] for one in _waiting(thread)}


def asking(thread: Thread) -> dict[str, Json]:
    """What they add to the state of a thread without checkpoints."""
    waiting = _waiting(thread)
    if not waiting:
        return {}
    last = thread.last_agent_run
    before = last.spec.agent if last is not None else ""
    names = {one.id: asks.agent or before for asks in of_all(thread.store) for one in asks.known.values()}
    tasks: list[Json] = [
        {
            "id": f"question:{one.id}",
            "name": names[one.id],
            "path": ["agent"],
            "error": None,
            "interrupts": [_shown(one)],
            "checkpoint": None,
            "state": None,
            "result": None,
        }
        for one in waiting
    ]
    following = list[Json](dict.fromkeys(names[one.id] for one in waiting))
    return {"next": following, "tasks": tasks, "interrupts": [_shown(one) for one in waiting]}


def with_questions(state: dict[str, Json], thread: Thread) -> dict[str, Json]:
    """The state of a graph, and what a plain agent that has run it asks by itself."""
    asked, waiting = state.get("interrupts"), _waiting(thread)
    if not waiting or not isinstance(asked, list):
        return state
    return {**state, "interrupts": [*asked, *map(_shown, waiting)]}


def _waiting(thread: Thread) -> list[Interrupt]:
    taken = answering.taken(thread.runs)
    return [one for one in answering.known(thread.store).values() if one.id not in taken]


def _shown(one: Interrupt) -> Json:
    shown: dict[str, Json] = {
        "value": render("json", one.value),
        "id": one.id,
        "kind": one.kind,
        "created_at": iso(one.created_at_ms),
    }
    if one.belongs_to:
        shown["belongs_to"] = render("json", one.belongs_to)
    if (schema := schema_of(one)) is not None:
        shown["schema"] = schema
    if one.terms.deadline_ms:
        shown["deadline"] = iso(one.terms.deadline_ms)
    return shown
