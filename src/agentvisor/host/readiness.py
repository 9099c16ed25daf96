"""Whether a host can do what it is asked to: Temporal answers it, and lets it have work.

A host asks Temporal every few seconds. That costs it one small read, and is the only way to know: between two commits
nothing else would tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from enum import StrEnum
from time import monotonic

import structlog
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.host.deployment import UNVERSIONED, gets_work

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.host")

_OFTEN = 2.0
"""Seconds between two questions, at most."""

_ANSWERED = (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.RESOURCE_EXHAUSTED)
"""Refusals that only somebody who is there can give."""

_NEVER_TOLD = (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED)


class NotReady(StrEnum):
    """Why requests and runs had better go to another host."""

    STOPPING = "stopping"
    TEMPORAL_UNREACHABLE = "temporal_unreachable"
    VERSION_NOT_CURRENT = "version_not_current"


class Readiness:
    """What Temporal last said to this host."""

    def __init__(
        self,
        client: Client,
        task_queue: str,
        *,
        silence: float,
        version: WorkerDeploymentVersion | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`silence`: seconds without an answer, after which Temporal is out of reach; `version`: of this host."""
        self._client = client
        self._task_queue = task_queue
        self._version = version
        self._clock = clock
        self._silence = silence
        self._often = min(_OFTEN, silence / 4)
        self._heard_at = clock()
        self._was_reachable = True
        # A host without a version has work unless a version has the queue.
        self._has_work = version is None
        # Once it had work it is ready for good: what another version takes over does not make this host useless.
        self._had_work = False
        self._asked = asyncio.Event()
        self._warned = False

    def reason(self) -> NotReady | None:
        """Why this host is not ready; None: it is."""
        if self._clock() - self._heard_at > self._silence:
            return NotReady.TEMPORAL_UNREACHABLE
        return None if self._has_work else NotReady.VERSION_NOT_CURRENT

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Ask Temporal while the context lasts; the first answer is waited for, a moment at most.

        A host that is said to be ready before it has asked takes the place of one that is.
        """
        asking = asyncio.create_task(self._ask_for_ever(), name="readiness")
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._often):
                    await self._asked.wait()
            yield
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _ask_for_ever(self) -> None:
        while True:
            await self._ask()
            self._tell()
            self._asked.set()
            await asyncio.sleep(self._often)

    async def _ask(self) -> None:
        request = DescribeNamespaceRequest(namespace=self._client.namespace)
        try:
            await self._client.workflow_service.describe_namespace(
                request, timeout=timedelta(seconds=self._silence / 2)
            )
        except RPCError as error:
            if error.status not in _ANSWERED:
                return
        self._heard_at = self._clock()
        if not self._had_work:
            self._had_work = await self._gets_work()

    async def _gets_work(self) -> bool:
        try:
            self._has_work = await gets_work(self._client, self._task_queue, self._version)
        except RPCError as error:
            # A host that may not ask would never be ready. Whatever else it is, it is asked again.
            if error.status not in _NEVER_TOLD:
                return False
            if self._version is not None:
                log.warning("deployment_not_known", reason=error.message)
            self._has_work = True
        return self._has_work

    def _tell(self) -> None:
        reachable = self.reason() is not NotReady.TEMPORAL_UNREACHABLE
        if reachable != self._was_reachable:
            self._was_reachable = reachable
            if reachable:
                log.info("temporal_reachable")
            else:
                log.warning("temporal_unreachable", seconds=self._silence)
        if self.reason() is NotReady.VERSION_NOT_CURRENT and not self._warned:
            self._warned = True
            log.warning(
                "version_not_current",
                deployment=self._version.deployment_name if self._version else None,
                build_id=self._version.build_id if self._version else UNVERSIONED,
                what="this host gets no work until its version is made current: agentvisor deployment promote",
            )
