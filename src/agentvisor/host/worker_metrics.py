"""What Temporal's SDK counts of its workers and calls, as metrics of this host (docs/decisions/0019).

The SDK's own end for Prometheus would be another port, without a key, and would name each host's queue in its labels.
Here it writes into a buffer instead, which is taken every second and with each scrape.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

from prometheus_client import Counter, Gauge
from temporalio.runtime import MetricBuffer, MetricBufferDurationFormat

from agentvisor.host import metrics
from agentvisor.host.metrics import Metric
from agentvisor.host.temporal_core import set_up_core

_UPDATES = 100_000
"""That the buffer holds, over a minute of a host's hardest work. What comes then is lost, and the SDK logs an error."""
_EVERY = 1.0
_UNTOLD = "none"
_QUEUES = ("shelves", "upkeep", "webhooks")

_Told = Mapping[str, object]
"""The SDK's labels."""


class _Taking:
    """The buffer of this process's runtime, once there is one, and the queue of its host."""

    buffer: MetricBuffer | None = None
    task_queue = ""


_taking = _Taking()


def measure_temporal(task_queue: str) -> None:
    """Have the SDK's runtime of this process write into a buffer: before its first client is made."""
    buffer = MetricBuffer(_UPDATES, MetricBufferDurationFormat.SECONDS)
    if set_up_core(buffer):
        _taking.buffer, _taking.task_queue = buffer, task_queue


@asynccontextmanager
async def taking_temporals() -> AsyncGenerator[None]:
    """Empty the buffer again and again while the context lasts."""
    task = asyncio.create_task(_again_and_again(), name="metrics of Temporal's SDK")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _again_and_again() -> None:
    while _taking.buffer is not None:
        await asyncio.sleep(_EVERY)
        take_temporals()


def take_temporals() -> int:
    """Take what the buffer holds into the metrics; how many updates that were."""
    if _taking.buffer is None:
        return 0
    updates = _taking.buffer.retrieve_updates()
    for update in updates:
        known = _METRICS.get(update.metric.name)
        if known is None:
            continue
        metric, labels = known
        values = labels(update.attributes)
        if values is not None:
            _take(metric, values, update.value)
    return len(updates)


def _take(metric: Metric, labels: tuple[str, ...], value: float) -> None:
    key = metric, labels
    take = _takers.get(key)
    if take is None:
        child = metric.labels(*labels)
        take = child.inc if isinstance(child, Counter) else child.set if isinstance(child, Gauge) else child.observe
        _takers[key] = take
    take(value)


_takers: dict[tuple[Metric, tuple[str, ...]], Callable[[float], None]] = {}
"""Looking a series up takes longer than to count in it; there are as many as a host shows."""


def _call(told: _Told) -> tuple[str, ...]:
    return (str(told.get("operation", _UNTOLD)),)


def _failed_call(told: _Told) -> tuple[str, ...]:
    return (*_call(told), str(told.get("status_code", _UNTOLD)))


def _worker(told: _Told) -> tuple[str, ...]:
    """Which of the host's workers (host/worker.py), by its queue: `QUEUE`, `QUEUE:shelves`, `QUEUE:HOST_ID`, ..."""
    queue = str(told.get("task_queue", ""))
    if queue == _taking.task_queue:
        return ("runs",)
    last = queue.removeprefix(_taking.task_queue).removeprefix(":")
    return (last if last in _QUEUES else "own",)


def _kind(kinds: Mapping[str, str], label: str) -> Callable[[_Told], tuple[str, ...] | None]:
    def of(told: _Told) -> tuple[str, ...] | None:
        kind = kinds.get(str(told.get(label)))
        return None if kind is None else (*_worker(told), kind)

    return of


def _of_kind(kind: str) -> Callable[[_Told], tuple[str, ...]]:
    return lambda told: (*_worker(told), kind)


_slots = _kind({"WorkflowWorker": "workflow", "ActivityWorker": "activity"}, "worker_type")
_pollers = _kind(
    {"workflow_task": "workflow", "sticky_workflow_task": "sticky", "activity_task": "activity"}, "poller_type"
)

_METRICS: dict[str, tuple[Metric, Callable[[_Told], tuple[str, ...] | None]]] = {
    "temporal_request": (metrics.TEMPORAL_REQUESTS, _call),
    "temporal_request_failure": (metrics.TEMPORAL_FAILURES, _failed_call),
    "temporal_request_latency": (metrics.TEMPORAL_SECONDS, _call),
    "temporal_long_request_failure": (metrics.POLL_FAILURES, _failed_call),
    "temporal_num_pollers": (metrics.WORKER_POLLERS, _pollers),
    "temporal_worker_task_slots_used": (metrics.SLOTS_USED, _slots),
    "temporal_worker_task_slots_available": (metrics.SLOTS_FREE, _slots),
    "temporal_workflow_task_schedule_to_start_latency": (metrics.SCHEDULE_TO_START, _of_kind("workflow")),
    "temporal_activity_schedule_to_start_latency": (metrics.SCHEDULE_TO_START, _of_kind("activity")),
    "temporal_workflow_task_execution_latency": (metrics.TASK_SECONDS, _worker),
    "temporal_workflow_task_execution_failed": (metrics.TASK_FAILURES, _worker),
    "temporal_sticky_cache_size": (metrics.CACHED_WORKFLOWS, _worker),
}
"""Of the SDK's metrics, those that an operator needs; their labels are fewer here."""
