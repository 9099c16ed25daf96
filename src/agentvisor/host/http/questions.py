"""The questions of a plain agent, shown as LangGraph's interrupts are: the function that asks is the one task."""

from __future__ import annotations

from agentvisor.core.questions import Question
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread
from agentvisor.host.http.times import iso
from agentvisor.host.render_typed import Json, render


def questions(store: Store) -> dict[str, Json]:
    """Those that wait for an answer, by the task that asks."""
    return {f"question:{one.id}": [_interrupt(one)] for one in store.questions.waiting}


def asking(thread: Thread) -> dict[str, Json]:
    """What they add to the state of a thread without checkpoints."""
    waiting = thread.store.questions.waiting
    if not waiting:
        return {}
    last = thread.last_agent_run
    name = last.spec.agent if last is not None else ""
    tasks: list[Json] = [
        {
            "id": f"question:{one.id}",
            "name": name,
            "path": ["agent"],
            "error": None,
            "interrupts": [_interrupt(one)],
            "checkpoint": None,
            "state": None,
            "result": None,
        }
        for one in waiting
    ]
    return {"next": [name], "tasks": tasks, "interrupts": [_interrupt(one) for one in waiting]}


def with_questions(state: dict[str, Json], thread: Thread) -> dict[str, Json]:
    """The state of a graph, and what a plain agent that has run it asks by itself."""
    asked, waiting = state.get("interrupts"), thread.store.questions.waiting
    if not waiting or not isinstance(asked, list):
        return state
    return {**state, "interrupts": [*asked, *map(_interrupt, waiting)]}


def _interrupt(question: Question) -> Json:
    value = render("json", question.value)
    return {"value": value, "id": question.id, "kind": question.kind, "created_at": iso(question.created_at_ms)}
