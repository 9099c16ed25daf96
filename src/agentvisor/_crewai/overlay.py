"""Lays the outputs of finished tasks over a live crew: such a task returns its output, and nothing of it is run.

The methods by which a crew runs its tasks, `Crew.kickoff` and `Task.execute_*`, are replaced in the agent's process,
which lives for one run. So the crew's own order of things holds: contexts, conditions, tasks side by side, a manager.
"""

from __future__ import annotations

import contextvars
import hashlib
import json
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

from crewai import Crew, Task, TaskOutput

from agentvisor._crewai import task_outputs
from agentvisor._crewai.ledger import Ledger, place
from agentvisor._crewai.plan import ROOT, Identity, place_of, plan_of
from agentvisor._crewai.shown import Shown


@dataclass(frozen=True)
class _Started:
    """A crew that runs, and where its tasks are kept."""

    crew: Crew
    scope: str
    plan: list[Identity]


_current: ContextVar[_Started | None] = ContextVar("agentvisor_crewai_crew", default=None)


class Overlay:
    """One execution's. `root` is the crew that is the agent; None where that is a flow."""

    def __init__(self, ledger: Ledger, shown: Shown, root: Crew | None) -> None:
        self._ledger = ledger
        self._shown = shown
        self._root = root
        self._side_by_side: list[Future[TaskOutput]] = []

    def install(self) -> None:
        """Replace the methods."""
        crews, tasks = cast("Any", Crew), cast("Any", Task)
        kickoff, akickoff = crews.kickoff, crews.akickoff
        sync, aio = tasks.execute_sync, tasks.aexecute_sync

        def begin(crew: Crew, inputs: Any = None, *rest: Any, **named: Any) -> Any:
            # A crew that streams starts itself once more, without streaming.
            if crew.stream:
                return kickoff(crew, inputs, *rest, **named)
            with self._started(crew, inputs):
                return kickoff(crew, inputs, *rest, **named)

        async def abegin(crew: Crew, inputs: Any = None, *rest: Any, **named: Any) -> Any:
            if crew.stream:
                return await akickoff(crew, inputs, *rest, **named)
            with self._started(crew, inputs):
                return await akickoff(crew, inputs, *rest, **named)

        def execute(task: Task, agent: Any = None, context: Any = None, tools: Any = None) -> TaskOutput:
            with self._task(task) as at:
                if at is None:
                    return sync(task, agent, context, tools)
                return self._kept(at, task) or self._finish(at, task, sync(task, agent, context, tools))

        async def aexecute(task: Task, agent: Any = None, context: Any = None, tools: Any = None) -> TaskOutput:
            with self._task(task) as at:
                if at is None:
                    return await aio(task, agent, context, tools)
                return self._kept(at, task) or self._finish(at, task, await aio(task, agent, context, tools))

        def beside(task: Task, agent: Any = None, context: Any = None, tools: Any = None) -> Future[TaskOutput]:
            future: Future[TaskOutput] = Future()
            self._side_by_side.append(future)
            within = contextvars.copy_context()
            arguments = (future, lambda: execute(task, agent, context, tools))
            threading.Thread(target=within.run, args=(_complete, *arguments), daemon=True).start()
            return future

        crews.kickoff, crews.akickoff = begin, abegin
        tasks.execute_sync, tasks.aexecute_sync, tasks.execute_async = execute, aexecute, beside

    def settle(self) -> None:
        """Wait for tasks that run beside one that asks: what they finish is kept."""
        wait(self._side_by_side)

    def place(self, task: Task | None) -> str | None:
        """Where a task's output is kept; None for one that is no crew's."""
        started = _current.get()
        if started is None or task is None:
            return None
        number = next((number for number, one in enumerate(started.crew.tasks) if one is task), None)
        return None if number is None else place_of(started.scope, number)

    @contextmanager
    def _started(self, crew: Crew, inputs: object) -> Generator[None]:
        # CrewAI's own checkpoints hold the keys of models.
        crew.checkpoint = False
        for agent in crew.agents:
            agent.checkpoint = False
        plan = plan_of(crew.tasks)
        scope = ROOT if crew is self._root else self._ledger.numbered(f"{place.get()}{_name(crew, plan, inputs)}")
        token = _current.set(_Started(crew, scope, plan))
        try:
            yield
        finally:
            _current.reset(token)

    @contextmanager
    def _task(self, task: Task) -> Generator[str | None]:
        at = self.place(task)
        token = place.set(f"{at}/" if at else place.get())
        try:
            yield at
        finally:
            place.reset(token)

    def _kept(self, at: str, task: Task) -> TaskOutput | None:
        entry = self._ledger.progress.tasks.get(at)
        if entry is None:
            self._shown.task("task_started", task)
            return None
        task.output = task_outputs.decode(entry, task)
        self._shown.task("task_restored", task)
        return task.output

    def _finish(self, at: str, task: Task, output: TaskOutput) -> TaskOutput:
        started = _current.get()
        identity = started.plan[int(at.rpartition("/")[2])] if started else None
        self._ledger.finish_task(at, task_outputs.encode(output, task, identity))
        self._shown.task("task_finished", task, output=output.raw)
        return output


def _complete(future: Future[TaskOutput], execute: Callable[[], TaskOutput]) -> None:
    try:
        future.set_result(execute())
    except BaseException as error:  # noqa: BLE001 (the crew waits for it, whatever it is)
        future.set_exception(error)


def _name(crew: Crew, plan: list[Identity], inputs: object) -> str:
    """Of a crew inside a flow or tool: what it is to do, so that a changed one is another one and begins anew."""
    told = json.dumps([[one.to_json() for one in plan], crew.name, inputs], default=str, sort_keys=True)
    return f"{crew.name}:{hashlib.sha256(told.encode()).hexdigest()[:16]}"
