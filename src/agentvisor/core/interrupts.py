"""What waits for an answer: one record for every framework, and how a thread keeps those that it is told of.

A plain agent's questions are in `questions`, with the same terms. A graph's interrupts are in its checkpoint's writes,
whose bytes nobody here reads: of those the thread keeps what LangGraph has no room for (`noted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from agentvisor.core.ids import RunId

MOST_CLOSED = 1_000


@dataclass(frozen=True, slots=True)
class Terms:
    """What an answer may look like, and what becomes of a question that nobody answers."""

    schema: bytes = b""
    """A JSON Schema, as JSON; empty: unknown."""
    deadline_ms: int = 0
    """0: it waits for as long as the thread lives."""
    default_answer: bytes | None = None
    """JSON that is given at the deadline as if a person had; None: what waits is closed then."""

    @property
    def stored_bytes(self) -> int:
        return 24 + len(self.schema) + len(self.default_answer or b"")


NO_TERMS = Terms()


@dataclass(frozen=True, slots=True)
class Interrupt:
    """One thing that waits for an answer."""

    id: str
    kind: str
    value: bytes
    """JSON; empty where a checkpoint's writes hold it."""
    belongs_to: bytes = b""
    """A JSON object: namespace, task, node, tool call; what the framework knows."""
    terms: Terms = NO_TERMS
    created_at_ms: int = 0
    run_id: str = ""
    """Which run asked."""

    @property
    def stored_bytes(self) -> int:
        texts = len(self.id) + len(self.kind) + len(self.run_id)
        return 48 + texts + len(self.value) + len(self.belongs_to) + self.terms.stored_bytes

    def is_same(self, other: Interrupt) -> bool:
        """Whether it is the same question, whenever it was asked."""
        return (self.id, self.kind, self.value) == (other.id, other.kind, other.value)


@dataclass(frozen=True, slots=True)
class Report:
    """What waits now, in the place of what was reported before."""

    interrupts: tuple[Interrupt, ...]
    takes_input: bool


@dataclass(frozen=True, slots=True)
class Note:
    """What a graph's interrupt has no room for; the first one counts until it is answered."""

    interrupt: Interrupt


@dataclass(frozen=True, slots=True)
class StillWaiting:
    """The run is about to pause: of all that was noted, only these wait.

    Code that swallows the pause of a framework goes on, and nobody is asked what it had noted.
    """

    ids: frozenset[str]


@dataclass(slots=True)
class Interrupts:
    """Those of one agent of a thread, by id."""

    reported: dict[str, Interrupt] = field(default_factory=dict[str, Interrupt])
    takes_input: bool = True
    """False: new input would lose or break what the framework holds while one waits."""
    noted: dict[str, Interrupt] = field(default_factory=dict[str, Interrupt])
    aside: dict[str, Interrupt] = field(default_factory=dict[str, Interrupt])
    """While a run without answers is under way: notes of what it found waiting, and may ask again."""
    answered: dict[str, Interrupt] = field(default_factory=dict[str, Interrupt])
    """While a run with answers is under way: notes of what it answers, which waits again where the run fails."""
    closed: dict[str, None] = field(default_factory=dict[str, None])
    """Given up, or past their deadlines."""
    closed_at: str = ""
    """The root's checkpoint under which all that a graph asks was given up, though it still shows it."""
    forgotten: bool = False
    """The framework still holds what was given up: its runner makes it forget, and says so with its next report."""
    noted_at: str = ""
    """The root's checkpoint under which the notes wait: under another one nobody waits. Empty: it is not known."""
    asks_at: str = ""
    """The root's checkpoint under which a graph had asked when another agent had its turn."""

    def __bool__(self) -> bool:
        notes = self.noted or self.aside or self.answered
        return bool(self.reported or notes or self.closed or self.closed_at or self.forgotten or self.asks_at)

    def report(self, report: Report) -> None:
        self.reported = {one.id: self._with_terms(one) for one in report.interrupts}
        self.takes_input = report.takes_input or not self.reported
        self.forgotten = False
        for one in report.interrupts:
            self.closed.pop(one.id, None)

    def _with_terms(self, reported: Interrupt) -> Interrupt:
        """A framework tells what waits, and has no room for what else `agentvisor.interrupt` was given."""
        known = self.noted.pop(reported.id, None) or self.aside.pop(reported.id, None)
        known = known or self.reported.get(reported.id)
        if known is None:
            return reported
        return replace(reported, kind=known.kind, terms=known.terms if reported.terms == NO_TERMS else reported.terms)

    def note(self, note: Note) -> None:
        asked = note.interrupt.id
        self.noted.setdefault(asked, self.aside.pop(asked, note.interrupt))
        self.noted_at = ""  # until the run says, at its pause, what waits
        self.answered.pop(asked, None)
        self.closed.pop(asked, None)

    def keep(self, waiting: StillWaiting, head: str) -> None:
        self.noted = {one: note for one, note in self.noted.items() if one in waiting.ids}
        self.noted_at = head

    def begin(self, answers: Iterable[str], *, abandons: bool) -> None:
        """A run begins that brings these answers; one without any begins anew, and a graph will ask again."""
        given = list(answers)
        if given:
            self.answered = {one: self.noted.pop(one) for one in given if one in self.noted}
        else:
            self.noted, self.aside = {}, self.noted
        if abandons:
            self.aside = {}
            self._close([*self.reported])
            self.reported, self.takes_input, self.forgotten = {}, True, True

    def paused(self) -> None:
        """A run has ended with a question: whatever waits now was asked, or asked again, in that run."""
        self.aside, self.answered = {}, {}
        self.closed.clear()
        self.closed_at = ""

    def failed(self, now_ms: int) -> None:
        """A run has ended otherwise: what it found waiting, waits as before; what is overdue by now, without an end."""
        for one in (*self.aside.values(), *self.answered.values()):
            terms = Terms(one.terms.schema) if 0 < one.terms.deadline_ms <= now_ms else one.terms
            self.noted.setdefault(one.id, replace(one, terms=terms))
        self.aside, self.answered = {}, {}

    def close(self, questions: Iterable[str], head: str) -> None:
        """Nothing waits any more: of these questions, of what was reported, and of what a graph asks at this head."""
        self.forgotten = self.forgotten or bool(self.reported)
        self._close([*questions, *self.reported, *self.noted])
        self.reported, self.takes_input, self.noted = {}, True, {}
        self.closed_at = head or self.closed_at

    def _close(self, ids: Iterable[str]) -> None:
        for one in ids:
            self.closed[one] = None
        for one in list(self.closed)[:-MOST_CLOSED]:
            del self.closed[one]

    def clear(self) -> None:
        """The agent has come to its end: it holds no question."""
        self.reported, self.takes_input, self.noted, self.forgotten = {}, True, {}, False
        self.noted_at = self.asks_at = ""
        self.paused()

    @property
    def stored_bytes(self) -> int:
        noted = (*self.noted.values(), *self.aside.values(), *self.answered.values())
        records = (*self.reported.values(), *noted)
        closed = len(self.closed_at) + len(self.noted_at) + len(self.asks_at) + sum(len(one) + 4 for one in self.closed)
        return sum(one.stored_bytes for one in records) + closed


def renewed(known: Mapping[str, Interrupt], report: Report, answered: Iterable[str]) -> Report:
    """The report with the times of those that waited before and were not answered: no deadline starts anew."""
    gone = set(answered)

    def kept(one: Interrupt) -> Interrupt:
        before = known.get(one.id)
        if before is None or one.id in gone or not one.is_same(before):
            return one
        terms = replace(one.terms, deadline_ms=before.terms.deadline_ms)
        return replace(one, terms=terms, created_at_ms=before.created_at_ms, run_id=before.run_id)

    return replace(report, interrupts=tuple(map(kept, report.interrupts)))


@dataclass(frozen=True, slots=True)
class Seen:
    """A look at a thread, to be told from another: by its last run and its current checkpoint."""

    waiting: frozenset[str]
    last_run: RunId
    last_ended: bool
    head: str
