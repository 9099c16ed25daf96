"""Temporal's workers of a host: for threads and fresh runs, for what only this host can take, and for shelves."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import (
    FixedSizeSlotSupplier,
    PollerBehaviorSimpleMaximum,
    Worker,
    WorkerDeploymentConfig,
    WorkerTuner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from agentvisor import __version__
from agentvisor.host.capacity import RunCapacity
from agentvisor.host.codec.client import for_workers, indexing
from agentvisor.host.codec.terms import SearchTerms
from agentvisor.host.counts import count_workflow
from agentvisor.host.erasing import Eraser
from agentvisor.host.logs import log_workflow
from agentvisor.host.run_activity import Attempts
from agentvisor.host.workflow.expiring import upkeep_queue
from agentvisor.host.workflow.hearing import COUNTS, NOTES
from agentvisor.host.workflow.shelf import ShelfWorkflow
from agentvisor.host.workflow.telling import webhook_queue
from agentvisor.host.workflow.thread import ThreadWorkflow

BUILD = f"agentvisor-{__version__}"
"""What Temporal notes of a worker that is of no deployment; the SDK would hash all modules at each start."""

_CACHED_THREADS = 200
"""Threads that stay in memory; a cold one is replayed from one compacted input and a short history."""

_UPKEEP = 20
_UPKEEP_POLLERS = 2

_WEBHOOKS = 20
"""That are sent at a time: each may wait for half a minute."""

_TASK_SECONDS = 8
"""How long a step of a workflow may take; Temporal itself waits 10 s."""

_STICKY = timedelta(seconds=1)
"""For so long, what asks for a thread waits for the host that has it in memory, and may have been killed."""


_CACHED_SHELVES = 200
_SHELF_POLLERS = 2
_SHELF_TASKS = 20


@asynccontextmanager
async def shelf_worker(
    client: Client, eraser: Eraser, *, task_queue: str, deployment: WorkerDeploymentConfig | None = None
) -> AsyncGenerator[None]:
    """Serve shelves while the context lasts, on a queue of their own.

    They wait for no thread, and for no place among the runs that a host has at a time; and they are served until the
    end where a host drains.
    """
    worker = Worker(
        for_workers(client),
        task_queue=task_queue,
        workflows=[ShelfWorkflow],
        activities=[eraser.erase],
        workflow_runner=workflow_runner(),
        max_cached_workflows=_CACHED_SHELVES,
        max_concurrent_workflow_tasks=_SHELF_TASKS,
        max_concurrent_activities=_SHELF_TASKS,
        workflow_task_poller_behavior=PollerBehaviorSimpleMaximum(_SHELF_POLLERS),
        activity_task_poller_behavior=PollerBehaviorSimpleMaximum(1),
        sticky_queue_schedule_to_start_timeout=_STICKY,
        deployment_config=deployment,
        build_id=BUILD if deployment is None else None,
    )
    _allow_long_steps(worker)
    async with worker:
        yield


@asynccontextmanager
async def workers(
    client: Client,
    attempts: Attempts,
    capacity: RunCapacity,
    *,
    task_queue: str,
    own_queue: str,
    identity: str,
    stop_grace: float,
    terms: SearchTerms | None = None,
    deployment: WorkerDeploymentConfig | None = None,
) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """Poll while the context lasts; yields what stops taking runs and threads, and goes on with the host's own queue.

    Runs that are alive may need that: a compaction gives their tokens back to this host alone. By its identity, other
    hosts find this one (peers.py). `terms`: how threads write owners and metadata into Temporal's index. The own queue
    has no version: what is on it is for this host and no other, whichever version the thread has moved to.
    """
    COUNTS.add(count_workflow)
    NOTES.add(log_workflow)
    tuner = WorkerTuner.create_composite(
        workflow_supplier=FixedSizeSlotSupplier(50),
        activity_supplier=capacity,
        local_activity_supplier=FixedSizeSlotSupplier(1),
        nexus_supplier=FixedSizeSlotSupplier(1),
    )
    shared = Worker(
        for_workers(client),
        task_queue=task_queue,
        workflows=[ThreadWorkflow],
        activities=[attempts.run],
        interceptors=indexing(terms or SearchTerms()),
        identity=identity,
        workflow_runner=workflow_runner(),
        tuner=tuner,
        max_cached_workflows=_CACHED_THREADS,
        sticky_queue_schedule_to_start_timeout=_STICKY,
        graceful_shutdown_timeout=timedelta(seconds=stop_grace),
        deployment_config=deployment,
        build_id=BUILD if deployment is None else None,
    )
    own = Worker(
        for_workers(client),
        task_queue=own_queue,
        activities=[attempts.run],
        identity=identity,
        build_id=BUILD,
        graceful_shutdown_timeout=timedelta(seconds=stop_grace),
    )
    _allow_long_steps(shared)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(shared)
        await stack.enter_async_context(own)
        yield shared.shutdown


@asynccontextmanager
async def telling(
    client: Client,
    tell: Callable[[bytes], Awaitable[None]],
    *,
    task_queue: str,
    stop_grace: float,
    deployment: WorkerDeploymentConfig | None = None,
) -> AsyncGenerator[None]:
    """Take notices of runs' ends for webhooks while the context lasts; one that is cut off is taken by another host."""
    worker = Worker(
        for_workers(client),
        task_queue=webhook_queue(task_queue),
        activities=[tell],
        max_concurrent_activities=_WEBHOOKS,
        max_concurrent_activity_task_polls=1,
        graceful_shutdown_timeout=timedelta(seconds=stop_grace),
        deployment_config=deployment,
        build_id=BUILD if deployment is None else None,
    )
    async with worker:
        yield


@asynccontextmanager
async def upkeep(
    client: Client,
    activities: Sequence[Callable[[bytes], Awaitable[object]]],
    workflows: Sequence[type],
    *,
    task_queue: str,
    stop_grace: float,
    deployment: WorkerDeploymentConfig | None = None,
) -> AsyncGenerator[None]:
    """Take what nobody waits for, threads whose time is over and crons, while the context lasts."""
    worker = Worker(
        for_workers(client),
        task_queue=upkeep_queue(task_queue),
        activities=activities,
        workflows=workflows,
        workflow_runner=workflow_runner(),
        max_concurrent_activities=_UPKEEP,
        max_concurrent_workflow_tasks=_UPKEEP,
        workflow_task_poller_behavior=PollerBehaviorSimpleMaximum(_UPKEEP_POLLERS),
        activity_task_poller_behavior=PollerBehaviorSimpleMaximum(1),
        sticky_queue_schedule_to_start_timeout=_STICKY,
        graceful_shutdown_timeout=timedelta(seconds=stop_grace),
        deployment_config=deployment,
        build_id=BUILD if deployment is None else None,
    )
    async with worker:
        yield


def workflow_runner() -> SandboxedWorkflowRunner:
    """How workflow code runs: in Temporal's sandbox, our own modules shared by all threads."""
    # Core and protocol are pure: importing them anew for each thread would cost memory and start-up.
    restrictions = SandboxRestrictions.default.with_passthrough_modules("agentvisor", "google.protobuf")
    return SandboxedWorkflowRunner(restrictions=restrictions)


def _allow_long_steps(worker: Worker) -> None:
    """The SDK takes a step of 2 s for a deadlock and fails it, each time it is tried.

    Our workflow cannot hang, but to make a thread of thousands of namespaces smaller takes seconds on a busy machine:
    it would be stuck for ever. There is no public setting but the debug mode, which does more than that.
    """
    inner = worker._workflow_worker  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    if inner is not None:
        inner._deadlock_timeout_seconds = _TASK_SECONDS  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
