"""The task of a framework in which code runs: how the SDK learns of it without knowing any framework."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from agentvisor.core.effects import Place


class Task(Protocol):
    """A task of a framework, as far as effects need it."""

    def place(self, key: str) -> Place:
        """Where an effect of this task belongs."""
        ...

    def ask(self, value: object, before_pause: Callable[[str], None] | None = None) -> object:
        """Pause the run with a question, or return the answer: in the framework's own way and order.

        `before_pause` is told the question's id, where there is no answer yet.
        """
        ...

    def ask_last(self, value: object) -> object:
        """The same behind all questions that were answered so far, whatever order others ask in."""
        ...

    def answers(self) -> list[object]:
        """The answers that this task has been given."""
        ...

    def skip(self) -> None:
        """Count one question as asked and answered."""
        ...

    def keep_answers(self) -> None:
        """Let the task be given them again when it runs again."""
        ...

    def counting(self) -> AbstractContextManager[Callable[[], int]]:
        """While it lasts, count the questions that come up in this task."""
        ...


class HasCounter(Protocol):
    """A task that numbers what comes up in it by a counter of its own."""

    counter: Callable[[], int]


@contextmanager
def counting_by_counter(task: HasCounter) -> Generator[Callable[[], int]]:
    """`Task.counting` of such a task."""
    before, count = task.counter, [0]

    def counted() -> int:
        count[0] += 1
        return before()

    task.counter = counted
    try:
        yield lambda: count[0]
    finally:
        task.counter = before


Find = Callable[[], Task | None]

_finders: list[Find] = []


def find_with(find: Find) -> None:
    """Look for the current task with this, too."""
    if find not in _finders:
        _finders.append(find)


def current_task() -> Task | None:
    """The innermost task whose checkpoints are stored; None in plain code."""
    return next((task for find in _finders if (task := find()) is not None), None)
