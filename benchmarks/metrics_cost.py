"""What metrics cost on the way of a commit: the same commits of a real journal, with metrics and with none.

    python benchmarks/metrics_cost.py [--commits 400] [--rounds 60]

Temporal's end of the journal is left out (it answers at once), so that what is left is the host's own work: the share
of that is the upper bound of what metrics cost. Then the same against a heartbeat that takes as long as one that was
measured (0.9 ms on a quiet machine), with what it takes to take the SDK's own updates out of their buffer: two a call.
"""

from __future__ import annotations

import argparse
import asyncio
import time
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

from agentvisor.core.ids import AttemptId, RunId
from agentvisor.host import journal as journal_module
from agentvisor.host import worker_metrics
from agentvisor.host.journal import Journal, JournalSettings, Urgency
from agentvisor.host.journal_calls import Beat, JournalCalls, Outcome
from agentvisor.host.metrics import COMMIT_SECONDS

HEARTBEAT_SECONDS = 0.0009
MEASURED = ("COMMIT_OPERATIONS", "COMMIT_SECONDS", "FOLDED_BYTES", "LOG_BYTES", "WRITE_SECONDS", "_BEATS", "_FOLDS")


class Answers(JournalCalls):
    """Takes everything at once."""

    def __init__(self) -> None:
        """Without a client."""

    async def heartbeat(self, token: bytes, log: bytes) -> Beat:  # noqa: ARG002
        """Done."""
        return Beat(Outcome.DONE)

    async def fold(self, log: bytes) -> Outcome:  # noqa: ARG002
        """Done."""
        return Outcome.DONE


class Nothing:
    """In the place of a metric, or of a table of them."""

    def observe(self, _: float) -> None:
        """Not at all."""

    def inc(self, _: float = 1) -> None:
        """Not at all."""

    def __getitem__(self, _: object) -> Nothing:
        return self


@contextmanager
def without_metrics() -> Iterator[None]:
    """The journal counts nothing meanwhile."""
    before = {name: getattr(journal_module, name) for name in MEASURED}
    for name in MEASURED:
        setattr(journal_module, name, Nothing())
    try:
        yield
    finally:
        for name, metric in before.items():
            setattr(journal_module, name, metric)


async def seconds_per_commit(commits: int) -> float:
    """Of writes one after the other, each its own commit."""
    settings = JournalSettings(linger=0.0)
    attempt = AttemptId(RunId("r"), 1)
    journal = Journal(attempt, b"t", Answers(), settings, host_id="h", now_ms=lambda: int(time.time() * 1000))
    running = asyncio.create_task(journal.run())
    entry = b"x" * 600
    began = time.perf_counter()
    for _ in range(commits):
        await journal.append([entry], Urgency.NOW)
    spent = time.perf_counter() - began
    journal.fence()
    await asyncio.gather(running, return_exceptions=True)
    return spent / commits


def least(work: Callable[[], object], times: int = 2_000, rounds: int = 60) -> float:
    """Seconds that it takes, of the least disturbed round."""
    return min(timeit.repeat(work, number=times, repeat=rounds)) / times


def parts() -> tuple[float, float, float]:
    """Seconds of an observation, of a count, and of one update of the SDK's."""
    metric, labels = worker_metrics._METRICS["temporal_request_latency"]  # noqa: SLF001 - it is this that is measured
    told = {"operation": "RecordActivityTaskHeartbeat", "namespace": "default"}
    return (
        least(lambda: COMMIT_SECONDS.observe(0.002)),
        least(journal_module._BEATS[Outcome.DONE].inc),  # noqa: SLF001
        least(lambda: worker_metrics._take(metric, labels(told) or (), 0.0009)),  # noqa: SLF001
    )


def main() -> None:
    """Print milliseconds and shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=60)
    asked = parser.parse_args()
    counted, silent = list[float](), list[float]()
    for _ in range(asked.rounds):
        counted.append(asyncio.run(seconds_per_commit(asked.commits)))
        with without_metrics():
            silent.append(asyncio.run(seconds_per_commit(asked.commits)))
    # The least disturbed round of each: what others on the machine do is no cost of metrics.
    with_them, without = min(counted), min(silent)
    observe, count, update = parts()
    print(f"a commit, host's own work: {with_them * 1e6:.1f} us with metrics, {without * 1e6:.1f} us without")
    print(f"medians: {median(counted) * 1e6:.1f} us with, {median(silent) * 1e6:.1f} us without")
    print(f"an observation: {observe * 1e6:.2f} us; a count: {count * 1e6:.2f} us; an update: {update * 1e6:.2f} us")
    of_a_commit = 4 * observe + count + 2 * update
    print(f"of a commit, four observations, a count and two updates: {of_a_commit * 1e6:.1f} us")
    print(f"ratio of a commit with its heartbeat: {(HEARTBEAT_SECONDS + of_a_commit) / HEARTBEAT_SECONDS:.4f}")


if __name__ == "__main__":
    main()
