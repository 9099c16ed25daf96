"""The four truths, as a pure function of what was recorded outside and what a thread shows afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from agentvisor.cli.torturing.records import Record


class Truth(Enum):
    """What must hold whatever is killed."""

    KEPT = "what was acknowledged is there"
    CHAIN = "checkpoints form a chain without gap or repeat"
    ENDED_ONCE = "a run ends exactly once"
    NOT_AGAIN = "finished tasks are not run again"
    NOT_STUCK = "no thread is stuck"


@dataclass(frozen=True, slots=True)
class Violation:
    """One truth that does not hold, with the evidence."""

    truth: Truth
    thread: str
    what: str
    run: str = ""
    checkpoint: str = ""
    line: int = 0
    """Of the thread's outside record; 0 where it is not about a line."""


@dataclass(frozen=True, slots=True)
class SeenCheckpoint:
    """A checkpoint as the thread's history shows it."""

    id: str
    parent: str | None
    step: int
    finished_tasks: frozenset[str]
    """Ids of its tasks whose result is there."""


@dataclass(frozen=True, slots=True)
class SeenRun:
    """A run as its thread lists it, after its end."""

    id: str
    status: str
    endings: tuple[str | None, ...]
    """Of its attempts, in order."""
    tasks: frozenset[str]
    """What it adds to the state, as it was asked for: names of its fan-outs' tasks, or the answer that it brings."""
    final: str = "completed"
    """How its last attempt has to end: "paused" where it asks."""


@dataclass(frozen=True, slots=True)
class Seen:
    """All that the checks need of one thread."""

    thread: str
    records: Sequence[Record]
    history: Sequence[SeenCheckpoint]
    """Newest first, all of it."""
    runs: Sequence[SeenRun]
    done: Sequence[str]
    """The state's list, to which each task of a fan-out adds its name."""


def violations(seen: Seen) -> list[Violation]:
    """All that is wrong with a thread whose runs have ended."""
    return [*_lost(seen), *_broken_chain(seen), *_ended_otherwise(seen), *repeated(seen.thread, seen.records)]


def acknowledged(records: Sequence[Record]) -> dict[str, Record]:
    """Checkpoints that an agent was told to be stored, by id."""
    return {one.checkpoint: one for one in records if one.what == "stored"}


def missing(thread: str, records: Sequence[Record], history: Sequence[SeenCheckpoint]) -> Iterator[Violation]:
    """Checkpoints that were acknowledged, in `records`, before `history` was read, and are not in it."""
    there = {one.id for one in history}
    for checkpoint, record in acknowledged(records).items():
        if checkpoint not in there:
            what = f"the checkpoint of step {record.step} was acknowledged in attempt {record.attempt}, and is gone"
            yield Violation(Truth.KEPT, thread, what, record.run, checkpoint, record.line)


def _lost(seen: Seen) -> Iterator[Violation]:
    yield from missing(seen.thread, seen.records, seen.history)
    there = {one.id: one for one in seen.history}
    ours = {one.task for one in seen.records if one.what == "started"}
    for record in seen.records:
        if record.what != "written" or record.task not in ours:
            continue
        at = there.get(record.checkpoint)
        if at is None or record.task not in at.finished_tasks:
            what = f"the writes of task {record.task} were acknowledged in attempt {record.attempt}, and are gone"
            yield Violation(Truth.KEPT, seen.thread, what, record.run, record.checkpoint, record.line)
    counted = Counter(seen.done)
    for run in seen.runs:
        wrong = {name: counted[name] for name in run.tasks if counted[name] != 1}
        if run.status == "success" and wrong:
            yield Violation(Truth.KEPT, seen.thread, f"the state holds results other than once: {wrong}", run.id)
    unasked = counted.keys() - {name for run in seen.runs for name in run.tasks}
    if unasked:
        yield Violation(Truth.KEPT, seen.thread, f"the state holds results that nobody asked for: {sorted(unasked)}")


def _broken_chain(seen: Seen) -> Iterator[Violation]:
    def broken(what: str, checkpoint: str) -> Violation:
        return Violation(Truth.CHAIN, seen.thread, what, checkpoint=checkpoint)

    for id_, count in Counter(one.id for one in seen.history).items():
        if count > 1:
            yield broken(f"it is there {count} times", id_)
    line = [*seen.history, None]
    for newer, older in pairwise(line):
        if newer is None:
            break
        if newer.parent != (older and older.id):
            yield broken(f"its parent is {newer.parent}, and the one before it is {older and older.id}", newer.id)
        expected = -1 if older is None else older.step + 1
        if newer.step != expected:
            yield broken(f"its step is {newer.step}, and {expected} would be next", newer.id)
    there = {one.id: one for one in seen.history}
    for checkpoint, record in acknowledged(seen.records).items():
        at = there.get(checkpoint)
        if at is not None and at.parent != record.parent:
            what = f"it was put after {record.parent}, and is shown after {at.parent}"
            yield Violation(Truth.CHAIN, seen.thread, what, record.run, checkpoint, record.line)


def _ended_otherwise(seen: Seen) -> Iterator[Violation]:
    final = {"completed", "paused", "cancelled", "agent_error", "could_not_start", "time_budget"}
    for run in seen.runs:
        ends = [ending for ending in run.endings if ending in final]
        if run.status != "success" or ends != [run.final] or run.endings[-1] != run.final:
            what = f"its status is {run.status}, and its attempts ended as {list(run.endings)}"
            yield Violation(Truth.ENDED_ONCE, seen.thread, what, run.id)
    known = {run.id for run in seen.runs}
    for stranger in {one.run for one in seen.records} - known:
        yield Violation(Truth.ENDED_ONCE, seen.thread, "it ran, and the thread does not know it", stranger)


def repeated(thread: str, records: Sequence[Record]) -> Iterator[Violation]:
    """Tasks that were started although their writes had been acknowledged before.

    A task that is started in an *older* attempt than the one that finished it is none of these: that process was cut
    off, does not know it yet, and nothing that it writes counts.
    """
    names: dict[str, str] = {}
    finished: dict[str, Record] = {}
    for record in records:
        if record.what == "written" and record.task in names:
            finished.setdefault(names[record.task], record)
        if record.what != "started":
            continue
        names[record.task] = record.name
        done = finished.get(record.name)
        if done is not None and record.attempt >= done.attempt:
            what = (
                f"task {record.name!r} was finished in attempt {done.attempt} (line {done.line}), "
                f"and started again in attempt {record.attempt}"
            )
            yield Violation(Truth.NOT_AGAIN, thread, what, record.run, done.checkpoint, record.line)


def again(records: Sequence[Record]) -> int:
    """Tasks that a kill cut off before they had told anybody, and that were run again: allowed, and counted."""
    started = Counter(one.name for one in records if one.what == "started")
    return sum(count - 1 for count in started.values())
