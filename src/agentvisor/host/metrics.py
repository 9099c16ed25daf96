"""Every metric of a host, in one table; served at /metrics."""

from __future__ import annotations

from prometheus_client import Counter

from agentvisor.host.workflow.counted import Counted

DROPPED_WRITES = Counter(
    "agentvisor_dropped_writes", "Pending writes that were dropped because a super-step had too many of them."
)
NEAR_LIMIT = Counter("agentvisor_threads_near_limit", "Threads that came to 80 % of storage.max_state.")
COMPACTIONS = Counter(
    "agentvisor_compactions",
    "Threads that continued as new, by guest: none (idle), not disturbed (live), or stopped (given_up).",
    ["guest"],
)
SHED = Counter("agentvisor_shed", "What compactions left out of threads that did not fit, by step.", ["step"])
FAILED_THREADS = Counter(
    "agentvisor_failed_threads",
    "Threads that take no more runs (state_too_large, journal_gap): alert on this.",
    ["reason"],
)


def count_workflow(what: Counted, label: str, number: int) -> None:
    """Count what a thread's workflow did on this host."""
    {Counted.COMPACTED: COMPACTIONS, Counted.SHED: SHED, Counted.FAILED: FAILED_THREADS}[what].labels(label).inc(number)
