"""The tool use in which code of a Strands agent runs, as a task: `agentvisor.interrupt` and `once` ask by its means."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote

from strands import Agent, ToolContext
from strands.hooks import (
    AfterToolCallEvent,
    AfterToolsEvent,
    BeforeToolCallEvent,
    HookOrder,
    HookProvider,
    HookRegistry,
)
from strands.interrupt import InterruptException

from agentvisor.client.conversation import conversation
from agentvisor.client.tasks import counting_by_counter, find_with
from agentvisor.client.tool_scope import scope
from agentvisor.core.effects import THREAD_SCOPE, Place

NAME = "agentvisor#"
"""Begins the names of our interrupts; their number follows: a tool that runs again asks in the same order."""


@dataclass
class ToolTask:
    """One call of a tool."""

    context: ToolContext[Any]
    counter: Callable[[], int] = field(default_factory=lambda: itertools.count().__next__)

    def place(self, key: str) -> Place:
        return Place(scope() or THREAD_SCOPE, key)

    def ask(self, value: object, before_pause: Callable[[str], None] | None = None) -> object:
        try:
            return self.context.interrupt(f"{NAME}{self.counter()}", reason=value)
        except InterruptException as paused:
            if before_pause is not None:
                before_pause(_above() + paused.interrupt.id)
            raise

    def ask_last(self, value: object) -> object:
        return self.context.interrupt(f"{NAME}{len(self.answers())}", reason=value)

    def answers(self) -> list[object]:
        asked = self.context.agent._interrupt_state.interrupts  # noqa: SLF001 (Strands shows it nowhere else)
        found = list[object]()
        for number in itertools.count():
            one = asked.get(self.context._interrupt_id(f"{NAME}{number}"))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            if one is None or one.response is None:
                break
            found.append(one.response)
        return found

    def skip(self) -> None:
        self.counter()

    def keep_answers(self) -> None:
        """Strands keeps them until the tool has ended."""

    def counting(self) -> AbstractContextManager[Callable[[], int]]:
        return counting_by_counter(self)


_tasks: ContextVar[tuple[ToolTask, ...]] = ContextVar("agentvisor_strands_tasks", default=())


def current() -> ToolTask | None:
    # In a plain function that calls an agent itself, only the function can pause the run.
    tasks = _tasks.get()
    return tasks[-1] if tasks and conversation() is None else None


def of_agent_tool(call: str) -> str:
    """What Strands puts before the ids of an agent that is a tool, in the state of the one that calls it."""
    return f"v1:agent_as_tool:{quote(call, safe='')}:"


def _above() -> str:
    """What comes before an id of the innermost agent here in that of the one that the run calls."""
    tasks = _tasks.get()
    called = [
        outer.context.tool_use["toolUseId"]
        for outer, inner in itertools.pairwise(tasks)
        if outer.context.agent is not inner.context.agent
    ]
    return "".join(map(of_agent_tool, called))


find_with(current)


class ToolTasks(HookProvider):
    """Tells the code of an agent's tools which call it is in."""

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:  # noqa: ARG002 (Strands' signature)
        registry.add_callback(BeforeToolCallEvent, _enter, order=HookOrder.SDK_LAST)
        registry.add_callback(AfterToolCallEvent, _leave, order=HookOrder.SDK_LAST)
        registry.add_callback(AfterToolsEvent, _leave_all, order=HookOrder.SDK_LAST)


def _enter(event: BeforeToolCallEvent[Any]) -> None:
    agent = cast("Agent", event.agent)
    context = ToolContext(tool_use=event.tool_use, agent=agent, invocation_state=event.invocation_state)
    _tasks.set((*_tasks.get(), ToolTask(context)))


def _leave(event: AfterToolCallEvent[Any]) -> None:
    tasks = _tasks.get()
    if tasks and tasks[-1].context.tool_use["toolUseId"] == event.tool_use["toolUseId"]:
        _tasks.set(tasks[:-1])


def _leave_all(event: AfterToolsEvent) -> None:
    """A tool that was interrupted has no event of its own."""
    tasks = _tasks.get()
    while tasks and tasks[-1].context.agent is event.agent:
        tasks = tasks[:-1]
    _tasks.set(tasks)
