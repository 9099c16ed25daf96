"""A lane: one thread after the other, each with a few runs, and a look at the truths whenever one has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import cast

from agentvisor.cli.torturing.client import Client, Json, NoAnswer, Refused, checkpoints
from agentvisor.cli.torturing.records import Record, Records
from agentvisor.cli.torturing.truths import Seen, SeenRun, Truth, Violation, missing, violations

LEAST_PATIENCE = 30.0
"""Seconds that hosts are given to answer at all."""
_LOOK = (0.3, 0.7)
"""Seconds between two looks at the outside record of a run."""
_ASK = (4.0, 8.0)
"""Seconds after which a host is asked all the same: each time is work for one that has runs to restart."""
_ASKING = 0.3
"""Share of runs that end with a question to a person."""
_READS = 0.5
"""Share of these times at which the history is read as well, while the run is at work."""


class Story:
    """What all lanes have come to so far."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.threads: dict[str, set[str]] = {}
        """By thread: its runs that were accepted."""
        self.ended: dict[str, Json] = {}
        """Runs as they were when they were first seen to have ended."""
        self.reads = 0
        """Histories that were read while a run was at work."""
        self.compactions = 0

    def found(self, violations: Iterable[Violation]) -> None:
        """Remember what is new: a thread is looked at more than once."""
        self.violations += [one for one in dict.fromkeys(violations) if one not in self.violations]

    @property
    def stuck(self) -> int:
        return len({one.thread for one in self.violations if one.truth is Truth.NOT_STUCK})


class Lane:
    """Runs one after the other until it is told that the time is up."""

    def __init__(
        self,
        name: str,
        client: Client,
        records: Records,
        story: Story,
        chance: Random,
        *,
        patience: float,
        seconds: tuple[float, float],
    ) -> None:
        self._name = name
        self._client = client
        self._records = records
        self._story = story
        self._chance = chance
        self._patience = patience
        self._seconds = seconds

    async def live(self, over: asyncio.Event) -> None:
        """Threads, until it is over; the run that is at work then is seen to its end."""
        number = 0
        while not over.is_set():
            number += 1
            thread = f"{self._name}-{number}"
            try:
                await self._live_thread(thread, over)
            except _Stuck as stuck:
                self._story.found([stuck.violation])
                return
            except Refused as refused:
                self._story.found([Violation(Truth.KEPT, thread, f"a host refused a request: {refused}")])
                return

    async def _live_thread(self, thread: str, over: asyncio.Event) -> None:
        async with self._answered(thread):
            await self._client.create_thread(thread)
        accepted = self._story.threads.setdefault(thread, set())
        runs = self._chance.randint(2, 8)
        asked: Json = {}
        for number in range(runs):
            if over.is_set():
                break
            # A run that ended with a question is followed by one that answers it.
            asked = self._answer(number) if asked.get("asks") else self._asked()
            async with self._answered(thread):
                run = await self._client.start_run(thread, number, asked)
            accepted.add(run)
            await self._until_ended(thread, run, last=f"{run} {asked.get('rounds', 'answer')} join")
        if accepted:
            async with self._answered(thread):
                self._story.found(await check(thread, self._client, self._records, self._story))

    @asynccontextmanager
    async def _answered(self, thread: str) -> AsyncGenerator[None]:
        """A host answers in the end, or the thread is stuck."""
        try:
            async with asyncio.timeout(max(self._patience, LEAST_PATIENCE)):
                yield
        except TimeoutError:
            raise _Stuck(unanswered(thread)) from None

    def _answer(self, number: int) -> Json:
        return {"answer": f"answer {number}"}

    def _asked(self) -> Json:
        chance = self._chance
        return {
            "rounds": chance.randint(1, 4),
            "width": chance.randint(2, 4),
            "asks": chance.random() < _ASKING,
            "seconds": chance.uniform(*self._seconds),
        }

    async def _until_ended(self, thread: str, run_id: str, *, last: str) -> None:
        """Return once a host says so; `last` is the name of the run's last task."""
        moved, asked, known, seen = time.monotonic(), time.monotonic(), -1, "no answer"
        pause = self._chance.uniform(*_ASK)
        while True:
            await asyncio.sleep(self._chance.uniform(*_LOOK))
            records = self._records.of(thread)
            if len(records) != known:
                moved, known = time.monotonic(), len(records)
            if time.monotonic() - asked < pause and not _is_written(last, records):
                continue
            asked, pause = time.monotonic(), self._chance.uniform(*_ASK)
            try:
                run = await self._client.run(thread, run_id)
            except NoAnswer:
                pass
            else:
                if run["status"] not in ("pending", "running"):
                    self._story.ended[run_id] = run
                    return
                now = f"{run['status']}, {len(cast('list[Json]', run['attempts']))} attempts"
                moved, seen = (moved if seen == now else time.monotonic()), now
                await self._read(thread)
            if time.monotonic() - moved > self._patience:
                what = f"nothing has moved for {self._patience:.0f} s: {seen}, {known} lines"
                raise _Stuck(Violation(Truth.NOT_STUCK, thread, what, run_id, line=known))

    async def _read(self, thread: str) -> None:
        """Now and then: what was acknowledged before a read is in it, whichever host answers."""
        if self._chance.random() > _READS:
            return
        before = self._records.of(thread)
        try:
            history = checkpoints(await self._client.history(thread, patiently=False))
        except NoAnswer:
            return
        self._story.reads += 1
        self._story.found(missing(thread, before, history))


def _is_written(name: str, records: Sequence[Record]) -> bool:
    """Whether a task's writes were acknowledged."""
    tasks = {one.task for one in records if one.name == name}
    return any(one.what == "written" and one.task in tasks for one in records)


class _Stuck(Exception):
    def __init__(self, violation: Violation) -> None:
        super().__init__(violation.what)
        self.violation = violation


def unanswered(thread: str) -> Violation:
    """No host has anything to say of a thread."""
    return Violation(Truth.NOT_STUCK, thread, "no host answers for it")


async def check(thread: str, client: Client, records: Records, story: Story) -> list[Violation]:
    """Hold a thread whose runs have ended against the outside records."""
    listed = await client.runs(thread)
    history = await client.history(thread)
    found: list[Violation] = []
    for run in listed:
        before = story.ended.get(str(run["run_id"]))
        if before is not None and _end_of(before) != _end_of(run):
            what = f"it had ended as {_end_of(before)}, and now as {_end_of(run)}"
            found.append(Violation(Truth.ENDED_ONCE, thread, what, str(run["run_id"])))
    unknown = story.threads[thread] - {str(run["run_id"]) for run in listed}
    what = "it was accepted, and the thread does not know it"
    found += [Violation(Truth.ENDED_ONCE, thread, what, run) for run in unknown]
    values = cast("Json", history[0]["values"]) if history else {}
    seen = Seen(
        thread=thread,
        records=records.of(thread),
        history=checkpoints(history),
        runs=[_seen_run(run) for run in listed],
        done=cast("list[str]", values.get("done") or []),
    )
    return [*found, *violations(seen)]


def _seen_run(run: Json) -> SeenRun:
    attempts = cast("list[Json]", run["attempts"])
    return SeenRun(
        id=str(run["run_id"]),
        status=str(run["status"]),
        endings=tuple(cast("str | None", attempt["ending"]) for attempt in attempts),
        tasks=_tasks_of(run),
        final="paused" if cast("Json", run["metadata"]).get("asks") else "completed",
    )


def _tasks_of(run: Json) -> frozenset[str]:
    """As it was asked for: a run may be on the record whose acceptance the client never heard of."""
    asked, name = cast("Json", run["metadata"]), run["run_id"]
    if "answer" in asked:
        return frozenset({f"{name} heard {asked['answer']}"})
    rounds, width = cast("int", asked["rounds"]), cast("int", asked["width"])
    return frozenset(f"{name} {turn} {at}" for turn in range(1, rounds + 1) for at in range(width))


def _end_of(run: Json) -> tuple[object, ...]:
    return run["status"], *(one["ending"] for one in cast("list[Json]", run["attempts"]))
