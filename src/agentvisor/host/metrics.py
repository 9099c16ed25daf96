"""Every metric of a host, in one table; served at /metrics."""

from __future__ import annotations

from prometheus_client import Counter

DROPPED_WRITES = Counter(
    "agentvisor_dropped_writes", "Pending writes that were dropped because a super-step had too many of them."
)
NEAR_LIMIT = Counter("agentvisor_threads_near_limit", "Threads that came to 80 % of storage.max_state.")
