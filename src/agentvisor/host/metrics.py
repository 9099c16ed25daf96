"""Every metric of a host, in one table; served at /metrics."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

from agentvisor.host.workflow.counted import Counted

DROPPED_WRITES = Counter(
    "agentvisor_dropped_writes", "Tasks whose pending writes were dropped: too many in a super-step, or too large."
)
MOVED_VALUES = Counter(
    "agentvisor_moved_values", "Values that went to external storage because a thread had no room for them."
)
NEAR_LIMIT = Counter("agentvisor_threads_near_limit", "Threads that came to 80 % of storage.max_state.")
STATE_SHARE = Histogram(
    "agentvisor_state_share",
    "Share of storage.max_state that no compaction can free, of the thread of each attempt, at its end.",
    buckets=(0.1, 0.25, 0.5, 0.8, 0.9, 1.0),
)
LIVE_ATTEMPTS = Gauge("agentvisor_live_attempts", "Attempts of runs, and sessions of clients, that live on this host.")
ENDED_ATTEMPTS = Counter(
    "agentvisor_ended_attempts", "Attempts that ended on this host, by how they ended.", ["ending"]
)
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
RESTARTS = Counter(
    "agentvisor_restarts", "Attempts after which a run was restarted by itself, by how they ended.", ["ending"]
)
GIVEN_UP_RUNS = Counter(
    "agentvisor_given_up_runs",
    "Runs that ended in error because their restarts were used up, by how the last attempt ended: alert on this.",
    ["ending"],
)
EXPIRED_INTERRUPTS = Counter(
    "agentvisor_interrupts_expired",
    "Interrupts past their deadlines: closed (cancel), answered with their defaults (answer), or closed because the "
    "thread did not take the run with the defaults (answer_refused: alert on this).",
    ["policy"],
)
REFUSED_CALLERS = Counter(
    "agentvisor_refused_callers",
    "Requests with no key or token (nothing_shown), or one that does not count (key, token).",
    ["reason"],
)

WEBHOOKS = Counter(
    "agentvisor_webhooks",
    "Webhooks that this host sent, by outcome: delivered, failed (it is tried again), refused (it is not).",
    ["outcome"],
)

_COUNTERS = {
    Counted.COMPACTED: COMPACTIONS,
    Counted.SHED: SHED,
    Counted.FAILED: FAILED_THREADS,
    Counted.RESTARTED: RESTARTS,
    Counted.GIVEN_UP: GIVEN_UP_RUNS,
    Counted.EXPIRED: EXPIRED_INTERRUPTS,
}


def count_workflow(what: Counted, label: str, number: int) -> None:
    """Count what a thread's workflow did on this host."""
    _COUNTERS[what].labels(label).inc(number)
