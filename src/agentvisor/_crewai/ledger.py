"""The ledger of an execution: every entry is durable when the call returns, from whatever thread it comes."""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Callable
from contextvars import ContextVar

from agentvisor._crewai.progress import Progress
from agentvisor.client.strict_json import dump
from agentvisor.client.waiting import Waiting
from agentvisor.protocol.metadata import Json


class Paused(BaseException):
    """A person is asked, and the run ends here. Not an Exception: CrewAI asks its model again after one."""


MOST_OTHERS = 100
"""Persisted states that are kept beside the one of the thread's own flow: those that were saved last."""

place: ContextVar[str] = ContextVar("agentvisor_crewai_place", default="")
"""Inside of which method call or task the caller is; empty at the top."""


class Ledger:
    """Reads and extends one `Progress`."""

    def __init__(self, progress: Progress, save: Callable[[Json], object], *, thread_id: str = "") -> None:
        self.progress = progress
        self._thread_id = thread_id
        self._save = save
        self._lock = threading.RLock()
        self._counters: dict[str, itertools.count[int]] = {}
        self.asked: dict[str, Waiting] = {}
        """Questions that this process has met and that have no answer."""

    def store(self) -> None:
        """Make it durable as it is."""
        with self._lock:
            self._save(self.progress.to_json())

    def numbered(self, name: str) -> str:
        """A name with its number: the n-th time that it is asked for, which is the same in every attempt."""
        with self._lock:
            return f"{name}#{next(self._counters.setdefault(name, itertools.count(1)))}"

    def finish_task(self, at: str, entry: Json) -> None:
        """A task has ended; its draft, if there was one, is final."""
        dump(entry, f"the output of task {at}")
        with self._lock:
            self.progress.tasks[at] = entry
            self.progress.drafts.pop(at, None)
            self.store()

    def finish_method(self, at: str, result: Json, state: Json, state_at: str | None = None) -> None:
        """A method of a flow has returned, and left the state like this; `state_at`: its place, of a flow inside."""
        with self._lock:
            methods = self.progress.methods
            for inside in [one for one in methods if one.startswith(f"{at}/")]:
                # It is not called again, nor are they.
                del methods[inside]
            methods[at] = result
            if state_at is None:
                self.progress.state = state
            else:
                methods[state_at] = state
            self.store()

    def end(self, output: Json) -> None:
        """It has ended, and this is what it gave."""
        with self._lock:
            self.progress.ended, self.progress.output = True, output
            self.store()

    def keep_draft(self, at: str, draft: Json) -> None:
        """Stored with the next entry: there is none without the question that it is for."""
        with self._lock:
            self.progress.drafts[at] = draft

    def keep_outcome(self, at: str, outcome: str) -> None:
        """What a person's feedback was taken for."""
        with self._lock:
            self.progress.outcomes[at] = outcome
            self.store()

    def persist(self, state_id: str, state: Json) -> None:
        """What @persist asks for."""
        dump(state, f"the persisted state {state_id}")
        with self._lock:
            persisted = self.progress.persisted
            persisted.pop(state_id, None)
            persisted[state_id] = state
            # Flows inside of others have new ids in each run, as a rule.
            others = [one for one in persisted if one != self._thread_id]
            for oldest in others[:-MOST_OTHERS]:
                del persisted[oldest]
            self.store()

    def answer(self, question: Waiting) -> Json:
        """The answer to a question; raises `Paused` where there is none yet."""
        with self._lock:
            if question.id in self.progress.answers:
                return self.progress.answers[question.id]
            self.asked[question.id] = question
            self.progress.waiting[question.id] = _kept(question)
            self.store()
        raise Paused(f"question {question.id} waits for an answer")

    def knows(self, question: str) -> bool:
        """Whether it was asked before, or answered."""
        return question in self.progress.waiting or question in self.progress.answers

    def question_id(self, at: str) -> str:
        """Of the question at that place: the same in every attempt, another one in another execution."""
        return hashlib.sha256(f"{self.progress.began}|{at}".encode()).hexdigest()[:32]

    def pause(self) -> list[Waiting]:
        """Keep that these questions wait, and no others; they are what this process has met."""
        with self._lock:
            self.progress.waiting = {id_: _kept(one) for id_, one in self.asked.items()}
            self.store()
            return list(self.asked.values())

    def still_waiting(self) -> list[Waiting]:
        """What was asked before and is not answered."""
        return [
            Waiting(id=id_, **one)  # pyright: ignore[reportArgumentType] (as it was kept)
            for id_, one in self.progress.waiting.items()
            if id_ not in self.progress.answers and isinstance(one, dict)
        ]


def _kept(one: Waiting) -> Json:
    return {"kind": one.kind, "value": one.value, "belongs_to": dict(one.belongs_to), "schema": one.schema}
