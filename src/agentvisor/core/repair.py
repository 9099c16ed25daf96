"""Which answers to tool calls a history keeps, moves, drops and lacks, so that a model's provider accepts it.

Providers ask for the same: behind each message that calls tools stand the answers to all of its calls and nothing else,
and no answer stands anywhere else. What a message is made of is each framework's own; here it is only what it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Calls:
    """A message of the model that calls tools, by the ids of its calls."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered to one call."""

    call_id: str
    stands_in: bool = False
    """It is no tool's, but was put there by an earlier repair."""


@dataclass(frozen=True, slots=True)
class Other:
    """Any other message."""


Entry = Calls | Answer | Other


@dataclass(frozen=True, slots=True)
class Kept:
    """The entry at this index."""

    index: int


@dataclass(frozen=True, slots=True)
class Missing:
    """An answer that is not there: to which call of the message at this index."""

    index: int
    call: int


Placed = Kept | Missing


@dataclass(slots=True)
class _Call:
    """One call, while its answer is looked for."""

    answer: int | None = None
    stands_in: bool = False


@dataclass(slots=True)
class _Open:
    """All calls so far, in order: some models give the same id again in a later message."""

    of_message: dict[int, list[_Call]] = field(default_factory=dict[int, list[_Call]])
    of_id: dict[str, list[_Call]] = field(default_factory=dict[str, list[_Call]])


def repaired(history: Sequence[Entry]) -> list[Placed]:
    """The history as a provider accepts it; what is in order stays as it is, so repairing twice changes nothing.

    Answers move up behind their call and keep their order among themselves; missing ones come after them. Of several
    answers to one call the first counts, but one of a tool before one that stands in. An answer to no call is left out.
    """
    calls = _calls_with_answers(history)
    placed: list[Placed] = []
    for index, entry in enumerate(history):
        if isinstance(entry, Answer):
            continue
        placed.append(Kept(index))
        asked = calls.get(index, [])
        placed += [Kept(answer) for answer in sorted(call.answer for call in asked if call.answer is not None)]
        placed += [Missing(index, number) for number, call in enumerate(asked) if call.answer is None]
    return placed


def is_whole(history: Sequence[Entry]) -> bool:
    """Whether there is nothing to repair."""
    return repaired(history) == [Kept(index) for index in range(len(history))]


def _calls_with_answers(history: Sequence[Entry]) -> dict[int, list[_Call]]:
    seen = _Open()
    for index, entry in enumerate(history):
        match entry:
            case Calls(ids):
                seen.of_message[index] = [_Call() for _ in ids]
                for id_, call in zip(ids, seen.of_message[index], strict=True):
                    seen.of_id.setdefault(id_, []).append(call)
            case Answer(id_, stands_in):
                call = _call_for(seen.of_id.get(id_, []), stands_in=stands_in)
                if call is not None:
                    call.answer, call.stands_in = index, stands_in
            case Other():
                pass
    return seen.of_message


def _call_for(calls: list[_Call], *, stands_in: bool) -> _Call | None:
    """The latest of these calls that still waits; else the latest that has only a stand-in, for a tool's answer."""
    for call in reversed(calls):
        if call.answer is None:
            return call
    if not stands_in:
        for call in reversed(calls):
            if call.stands_in:
                return call
    return None
