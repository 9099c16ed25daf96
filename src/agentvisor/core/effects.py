"""The ledger of effects: what a thread's agents are about to do outside, what they have done, and what is unknown (B5).

An effect is named by a key in a scope: a task of a super-step, or the thread itself. INTENDED is recorded before it may
happen and DONE before its caller hears of it; an entry found INTENDED by a later call is of unknown outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum

from agentvisor.core.ids import ROOT, CheckpointId, Namespace

THREAD_SCOPE = ""
"""The scope of keys outside any task."""

MAX_KEY = 256
"""Characters of a key."""

MAX_ERROR = 500
"""Characters that are kept of the error of an effect."""

_OUTCOME_BYTES = 8 * MAX_ERROR + 96
"""Set aside with every intent, so that how it ended can be recorded in a thread that is full."""


class EffectState(IntEnum):
    """The numbers are those of the wire."""

    INTENDED = 1
    """About to happen, happening, or of unknown outcome."""
    DONE = 2
    FAILED = 3
    """Its function raised: it may be tried again."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an effect belongs. One of a task is kept until the task's checkpoint is superseded."""

    scope: str
    key: str
    namespace: Namespace = ROOT
    checkpoint_id: CheckpointId | None = None
    """The checkpoint whose super-step the task is in; None outside any task."""
    root_id: CheckpointId | None = None
    """The root's checkpoint that the namespace runs under."""


@dataclass(frozen=True, slots=True)
class By:
    """The attempt that speaks, and the host's clock."""

    run_id: str
    attempt: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class Effect:
    """An entry of the ledger; journalled whole."""

    place: Place
    state: EffectState
    by: By
    """Who intended it last, and when."""
    result: bytes = b""
    """JSON."""
    error_type: str = ""
    error_message: str = ""
    unkept: str = ""
    """DONE, but what it returned could not be kept: why."""
    asked: bool = False
    """A person has been asked what became of it."""
    awaited: bool = False
    """Its function gave something to be awaited."""
    answers: int = 0
    """Interrupts of its task that it has used up: they are counted again each time the task runs (LangGraph)."""

    @property
    def stored_bytes(self) -> int:
        place = self.place
        texts = (place.scope, place.key, place.namespace, place.checkpoint_id or "", place.root_id or "",
                 self.by.run_id, self.error_type, self.error_message, self.unkept)  # fmt: skip
        aside = _OUTCOME_BYTES if self.state is EffectState.INTENDED else 0
        return 64 + len(self.result) + sum(_bytes(text) for text in texts) + aside


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class ForgetEffect:
    """The effect may happen anew."""

    scope: str
    key: str


@dataclass(slots=True)
class Ledger:
    """A thread's effects by scope and key."""

    _entries: dict[tuple[str, str], Effect] = field(default_factory=dict[tuple[str, str], Effect])
    _of_tasks: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Effect]:
        return iter(self._entries.values())

    def get(self, scope: str, key: str) -> Effect | None:
        return self._entries.get((scope, key))

    def record(self, effect: Effect) -> None:
        """Put it in the place of what was there; what is done stays done."""
        name = (effect.place.scope, effect.place.key)
        known = self._entries.get(name)
        if known is not None and known.state is EffectState.DONE and effect.state is not EffectState.DONE:
            return
        self._entries[name] = effect
        if effect.place.checkpoint_id is not None:
            self._of_tasks.add(name)

    def forget(self, scope: str, key: str) -> None:
        self._entries.pop((scope, key), None)
        self._of_tasks.discard((scope, key))

    def supersede(self, namespace: Namespace, checkpoint_id: CheckpointId) -> None:
        """A checkpoint was put: no task of an earlier one in its namespace runs again, nor of what ran under that.

        A subgraph that keeps its state between calls (no task id in its namespace) may go on from where it was.
        """
        for effect in self.superseded_by(namespace, checkpoint_id):
            self.forget(effect.place.scope, effect.place.key)

    def superseded_by(self, namespace: Namespace, checkpoint_id: CheckpointId) -> list[Effect]:
        """What is forgotten once that checkpoint is put."""
        is_root, gone = namespace == ROOT, list[Effect]()
        for effect in [self._entries[name] for name in self._of_tasks]:
            place = effect.place
            if place.namespace == namespace:
                is_gone = place.checkpoint_id is not None and place.checkpoint_id < checkpoint_id
            else:
                under = is_root and place.root_id is not None and ":" in place.namespace
                is_gone = under and place.root_id is not None and place.root_id < checkpoint_id
            if is_gone:
                gone.append(effect)
        return gone

    def keep_where(self, is_here: Callable[[Namespace, CheckpointId], bool]) -> None:
        """Forget the effects of tasks whose checkpoint was deleted."""
        for name in list(self._of_tasks):
            place = self._entries[name].place
            if place.checkpoint_id is not None and not is_here(place.namespace, place.checkpoint_id):
                self.forget(*name)

    def shares_questions(self, scope: str, key: str) -> bool:
        """Whether other effects of its task are undecided or have been asked about: their answers come in any order.

        A task asks one question at a time, and its answers are told apart by their order alone. Tools that one task
        calls side by side have no order.
        """
        return any(
            (one.state is EffectState.INTENDED or one.answers > 0)
            for one in (self._entries[name] for name in self._of_tasks if name[0] == scope and name[1] != key)
        )

    @property
    def stored_bytes(self) -> int:
        return sum(one.stored_bytes for one in self._entries.values())

    @property
    def intended(self) -> int:
        """How many are happening, or of unknown outcome."""
        return sum(one.state is EffectState.INTENDED for one in self._entries.values())


# --- what may follow what: each the new entry, or None where nothing changes ---------------------------------------


def intended(known: Effect | None, place: Place, by: By, *, again: bool, answers: int) -> Effect | None:
    """It is about to happen: never once it is done, and `again` only where it may have happened already."""
    if known is None:
        return Effect(place, EffectState.INTENDED, by, answers=answers)
    if known.state is EffectState.DONE or (known.state is EffectState.INTENDED and not again):
        return None
    return Effect(place, EffectState.INTENDED, by, awaited=known.awaited, answers=max(answers, known.answers))


def done(known: Effect | None, place: Place, by: By, *, result: bytes, unkept: str, answers: int) -> Effect | None:
    """It has happened; what is said first counts."""
    known = known or Effect(place, EffectState.INTENDED, by)
    if known.state is EffectState.DONE:
        return None
    return Effect(
        known.place,
        EffectState.DONE,
        known.by,
        result=result,
        unkept=unkept[:MAX_ERROR],
        awaited=known.awaited,
        answers=max(answers, known.answers),
    )


def failed(known: Effect | None, *, error_type: str, error_message: str) -> Effect | None:
    """Its function raised."""
    if known is None or known.state is not EffectState.INTENDED:
        return None
    return replace(
        known,
        state=EffectState.FAILED,
        asked=False,
        error_type=error_type[:MAX_ERROR],
        error_message=error_message[:MAX_ERROR],
    )


def noted(known: Effect | None, *, asked: bool = False, awaited: bool = False) -> Effect | None:
    """Something more is known of an effect that may have happened."""
    if known is None or known.state is not EffectState.INTENDED:
        return None
    return replace(known, asked=known.asked or asked, awaited=known.awaited or awaited)
