"""The questions of a plain agent: asked in the order in which its function runs, and answered by later runs.

A plain function has no state but these: it runs again from its start, on the input of the run that began, and each
question that was answered is answered at once. They are forgotten when the function has returned.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from agentvisor.core.interrupts import NO_TERMS, Terms


@dataclass(frozen=True, slots=True)
class Question:
    """One question; without an answer it waits for one."""

    id: str
    name: str
    """Tells it from the function's other questions; the same each time the function runs."""
    kind: str
    value: bytes
    """JSON, as the answer."""
    created_at_ms: int
    answer: bytes | None = None
    answered_by: str = ""
    """The run that brought the answer."""
    terms: Terms = NO_TERMS
    run_id: str = ""
    """The run that asked."""

    @property
    def stored_bytes(self) -> int:
        texts = len(self.id) + len(self.name) + len(self.kind) + len(self.answered_by) + len(self.run_id)
        return 48 + texts + len(self.value) + len(self.answer or b"") + self.terms.stored_bytes


@dataclass(frozen=True, slots=True)
class Ask:
    """A question comes up, in a function that runs on this input."""

    question: Question
    input: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    id: str
    answer: bytes
    run_id: str


@dataclass(slots=True)
class Questions:
    """A thread's questions, by id."""

    input: bytes = b""
    """JSON that the function runs on until it has returned."""
    asked: dict[str, Question] = field(default_factory=dict[str, Question])

    @property
    def waiting(self) -> list[Question]:
        return [one for one in self.asked.values() if one.answer is None]

    def ask(self, ask: Ask) -> None:
        """Note a question; the same one again changes nothing."""
        if not self.asked:
            self.input = ask.input
        self.asked.setdefault(ask.question.id, ask.question)

    def answer(self, answer: Answer) -> None:
        """Note an answer; the first one counts."""
        question = self.asked.get(answer.id)
        if question is not None and question.answer is None:
            self.asked[answer.id] = replace(question, answer=answer.answer, answered_by=answer.run_id)

    def clear(self) -> None:
        self.input = b""
        self.asked.clear()

    @property
    def stored_bytes(self) -> int:
        return len(self.input) + sum(one.stored_bytes for one in self.asked.values())
