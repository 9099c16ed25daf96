"""What a thread knows to wait, shown as LangGraph's interrupts are: each is asked by a task of its own."""

from __future__ import annotations

from collections.abc import Mapping

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


def with_terms(state: dict[str, Json], thread: Thread) -> dict[str, Json]:
    """The state of a graph, with what its interrupts have no room for: kind, schema and deadline."""
    noted = thread.store.interrupts.noted
    return _with_terms(state, noted) if noted else state


def _with_terms(state: dict[str, Json], noted: Mapping[str, Interrupt]) -> dict[str, Json]:
    shown = {**state, "interrupts": _each_with_terms(state.get("interrupts"), noted)}
    tasks = state.get("tasks")
    if isinstance(tasks, list):
        shown["tasks"] = [_task_with_terms(one, noted) if isinstance(one, dict) else one for one in tasks]
    return shown


def _task_with_terms(task: dict[str, Json], noted: Mapping[str, Interrupt]) -> Json:
    below = task.get("state")
    return {
        **task,
        "interrupts": _each_with_terms(task.get("interrupts"), noted),
        "state": _with_terms(below, noted) if isinstance(below, dict) else below,
    }


def _each_with_terms(asked: Json, noted: Mapping[str, Interrupt]) -> Json:
    if not isinstance(asked, list):
        return asked
    return [
        {**one, **_terms(noted[str(one["id"])])} if isinstance(one, dict) and one.get("id") in noted else one
        for one in asked
    ]


def _waiting(thread: Thread) -> list[Interrupt]:
    taken = answering.taken(thread.runs)
    return [one for one in answering.known(thread.store).values() if one.id not in taken]


def _shown(one: Interrupt) -> Json:
    shown: dict[str, Json] = {
        "value": render("json", one.value),
        "id": one.id,
        "created_at": iso(one.created_at_ms),
    }
    if one.belongs_to:
        shown["belongs_to"] = render("json", one.belongs_to)
    return shown | _terms(one)


def _terms(one: Interrupt) -> dict[str, Json]:
    shown: dict[str, Json] = {"kind": one.kind}
    if (schema := schema_of(one)) is not None:
        shown["schema"] = schema
    if one.terms.deadline_ms:
        shown["deadline"] = iso(one.terms.deadline_ms)
    return shown
