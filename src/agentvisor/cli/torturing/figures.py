"""What a torture has come to, as figures: kills, restarts, losses, and how long a run was away."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from rich.console import Console
from rich.table import Table

from agentvisor.cli.torturing.client import Json
from agentvisor.cli.torturing.faults import Fault
from agentvisor.cli.torturing.killing import Done
from agentvisor.cli.torturing.lanes import Story
from agentvisor.cli.torturing.records import Record, Records
from agentvisor.cli.torturing.truths import Truth, Violation, again

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Figures:
    """All of them; seconds are those between a kill and the first line of the run's next attempt."""

    faults: Counter[Fault]
    threads: int
    runs: int
    restarts: Counter[str]
    finished_tasks: int
    checkpoints: int
    run_again: int
    compactions: int
    reads: int
    unanswered: int
    recoveries: Mapping[Fault, Sequence[float]]
    lost: int
    repeated: int
    stuck: int
    others: int

    @property
    def kills(self) -> int:
        return sum(count for fault, count in self.faults.items() if fault.is_kill)


def figures_of(story: Story, records: Records, done: Sequence[Done], unanswered: int) -> Figures:
    """Count what was recorded."""
    lines = {thread: records.of(thread) for thread in story.threads}
    runs = list(story.ended.values())
    truths = Counter(one.truth for one in story.violations)
    return Figures(
        faults=Counter(one.fault for one in done),
        threads=len(story.threads),
        runs=sum(run["status"] == "success" for run in runs),
        restarts=Counter(ending for run in runs for ending in _restarts(run)),
        finished_tasks=sum(_finished(thread) for thread in lines.values()),
        checkpoints=sum(one.what == "stored" for thread in lines.values() for one in thread),
        run_again=sum(again(thread) for thread in lines.values()),
        compactions=story.compactions,
        reads=story.reads,
        unanswered=unanswered,
        recoveries=_recoveries(done, lines.values()),
        lost=truths[Truth.KEPT],
        repeated=truths[Truth.NOT_AGAIN],
        stuck=story.stuck,
        others=truths[Truth.CHAIN] + truths[Truth.ENDED_ONCE],
    )


def _restarts(run: Json) -> Iterable[str]:
    attempts = cast("list[Json]", run["attempts"])
    return (str(one["ending"]) for one in attempts[:-1])


def _finished(thread: Sequence[Record]) -> int:
    started = {one.task for one in thread if one.what == "started"}
    return len({one.task for one in thread if one.what == "written"} & started)


def _recoveries(done: Sequence[Done], threads: Iterable[Sequence[Record]]) -> Mapping[Fault, Sequence[float]]:
    """For each run that a kill has hit and that went on: seconds until its next attempt wrote its first line."""
    began = [one for thread in threads for one in thread if one.what == "began"]
    by_pid: dict[int, list[Record]] = defaultdict(list)
    by_attempt = {(one.run, one.attempt): one for one in began}
    for one in began:
        by_pid[one.pid].append(one)
    found: dict[Fault, list[float]] = defaultdict(list)
    for kill in done:
        for pid in kill.agents:
            # A number may have been another's before.
            mine = [one for one in by_pid[pid] if one.at <= kill.at]
            following = by_attempt.get((mine[-1].run, mine[-1].attempt + 1)) if mine else None
            if following is not None and following.at > kill.at:
                found[kill.fault].append(following.at - kill.at)
    return found


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def tell(figures: Figures, console: Console, *, backoff: str) -> None:
    """Print them."""
    made = Table("fault", "times", "runs hit and restarted", "away p50", "away p99", title_justify="left")
    made.title = f"Faults; a restart waits {backoff} first, doubled while nothing but kills happens, 1 s at most"
    for fault in Fault:
        away = figures.recoveries.get(fault, ())
        seconds = (f"{quantile(away, 0.5):.2f} s", f"{quantile(away, 0.99):.2f} s") if away else ("", "")
        made.add_row(fault.value, str(figures.faults[fault]), str(len(away) or ""), *seconds)
    console.print(made)
    told = {
        "kills": figures.kills,
        "threads": figures.threads,
        "runs completed": figures.runs,
        "restarts": figures.restarts.total(),
        "  of these": ", ".join(f"{count} {ending}" for ending, count in figures.restarts.most_common()),
        "tasks finished": figures.finished_tasks,
        "tasks cut off and run again": figures.run_again,
        "checkpoints acknowledged": figures.checkpoints,
        "compactions": figures.compactions,
        "histories read in between": figures.reads,
        "requests that got no answer": figures.unanswered,
        "lost acknowledgements": figures.lost,
        "repeated finished tasks": figures.repeated,
        "broken chains, runs ended otherwise than once": figures.others,
        "stuck threads": figures.stuck,
    }
    for name, value in told.items():
        console.print(f"{name:<46} {value}")


def tell_violations(found: Sequence[Violation], records: Records, console: Console) -> None:
    """Each with its evidence."""
    for one in found[:_SHOWN]:
        console.print(f"[red]VIOLATION[/]: {one.truth.value}: {one.what}", soft_wrap=True)
        where = f"{records.file_of(one.thread)}" + (f":{one.line}" if one.line else "")
        console.print(
            f"  thread {one.thread}, run {one.run or '-'}, checkpoint {one.checkpoint or '-'}, {where}", soft_wrap=True
        )
    if len(found) > _SHOWN:
        console.print(f"  and {len(found) - _SHOWN} more")
