"""A host's version among those of its Worker Deployment: who gets work is set in Temporal, and asked for there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from temporalio.api.enums.v1 import TaskQueueType, WorkerDeploymentVersionStatus
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkerDeploymentRequest,
    DescribeWorkerDeploymentResponse,
    SetWorkerDeploymentCurrentVersionRequest,
    SetWorkerDeploymentRampingVersionRequest,
)
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

from agentvisor.core.errors import InvalidInput, NotFound, Unavailable
from agentvisor.host.config_deployment import DeploymentConfig

_RPC_TIMEOUT = timedelta(seconds=10)
_PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds between tries while Temporal has too much to do."""

_Answer = TypeVar("_Answer")

UNVERSIONED = "unversioned"
"""In the place of a build id: hosts that have no version."""


class Role(StrEnum):
    """What a version has to do, in Temporal's words."""

    CURRENT = "current"
    """Gets all work, less what goes to the one that is ramping."""
    RAMPING = "ramping"
    DRAINING = "draining"
    """Gets no work any more; something may still be on it."""
    DRAINED = "drained"
    INACTIVE = "inactive"
    """Was never given work."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a deployment."""

    build_id: str
    role: Role
    percentage: float
    """Of the threads, for the one that is ramping."""


def worker_deployment(config: DeploymentConfig) -> WorkerDeploymentConfig | None:
    """How the workers of a host name their version; None: versioning is off.

    Every kind of workflow upgrades by itself: threads live for years, and their code understands every history that
    an earlier version has written (docs/decisions/0022).
    """
    if config.name is None or config.build_id is None:
        return None
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(deployment_name=config.name, build_id=config.build_id),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.AUTO_UPGRADE,
    )


async def versions(client: Client, name: str) -> Sequence[Version]:
    """The versions of a deployment that Temporal has heard of, newest first; none where it knows no such deployment."""
    found = await _described(client, name)
    if found is None:
        return []
    info = found.worker_deployment_info
    return [
        Version(
            one.deployment_version.build_id,
            _ROLES.get(one.status, Role.UNKNOWN),
            info.routing_config.ramping_version_percentage
            if info.routing_config.ramping_deployment_version.build_id == one.deployment_version.build_id
            else 0.0,
        )
        for one in sorted(info.version_summaries, key=lambda one: -one.create_time.ToNanoseconds())
    ]


async def gets_work(client: Client, task_queue: str, version: WorkerDeploymentVersion | None) -> bool:
    """Whether this version is current or ramping, as the queue has it; None: hosts without a version.

    The queue is asked, not the deployment: of one of those Temporal answers a few questions a second, whoever asks.

    Raises:
        RPCError: Temporal does not answer, or refuses to.
    """
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=task_queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    reply = await client.workflow_service.describe_task_queue(request, timeout=_RPC_TIMEOUT)
    known = reply.versioning_info
    if version is None:
        ramps = known.ramping_version_percentage > 0 and not known.ramping_deployment_version.build_id
        return ramps or not known.current_deployment_version.build_id
    return any(
        (one.deployment_name, one.build_id) == (version.deployment_name, version.build_id)
        for one in (known.current_deployment_version, known.ramping_deployment_version)
    )


async def promote(client: Client, name: str, build_id: str, *, percentage: float | None = None) -> None:
    """Let a version have all work from now on; or so much of it, and the current one the rest.

    Args:
        client: of the namespace that the hosts work in.
        name: of the deployment.
        build_id: of the version, or `UNVERSIONED`.
        percentage: 0 to 100; None makes it current.

    Raises:
        InvalidInput: the percentage is none, or Temporal does not allow this now, and says why.
        NotFound: no host of that version has polled.
    """
    if percentage is not None and not 0 <= percentage <= 100:
        raise InvalidInput(f"{percentage:g} is no percentage: give 0 to 100")
    build = "" if build_id == UNVERSIONED else build_id
    try:
        await _patiently(lambda: _promoted(client, name, build, percentage))
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise NotFound(
                f"Temporal knows no version {build_id!r} of deployment {name!r}: start a host of it first "
                "(temporal.deployment.name, temporal.deployment.build_id)"
            ) from error
        if error.status in (RPCStatusCode.FAILED_PRECONDITION, RPCStatusCode.INVALID_ARGUMENT):
            raise InvalidInput(f"Temporal does not do that: {error.message}") from error
        raise _unavailable(error) from error


async def _promoted(client: Client, name: str, build: str, percentage: float | None) -> None:
    if percentage is None:
        await client.workflow_service.set_worker_deployment_current_version(
            SetWorkerDeploymentCurrentVersionRequest(
                namespace=client.namespace, deployment_name=name, build_id=build, identity=client.identity
            ),
            timeout=_RPC_TIMEOUT,
        )
        return
    await client.workflow_service.set_worker_deployment_ramping_version(
        SetWorkerDeploymentRampingVersionRequest(
            namespace=client.namespace,
            deployment_name=name,
            # Nothing is ramping any more where nothing goes to it.
            build_id=build if percentage else "",
            percentage=percentage,
            identity=client.identity,
        ),
        timeout=_RPC_TIMEOUT,
    )


async def _patiently(ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
    """Ask again for some seconds while Temporal has had too many questions of this deployment."""
    for pause in _PAUSES:
        try:
            return await ask()
        except RPCError as error:
            if error.status is not RPCStatusCode.RESOURCE_EXHAUSTED:
                raise
        await asyncio.sleep(pause)
    return await ask()


async def _described(client: Client, name: str) -> DescribeWorkerDeploymentResponse | None:
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=name)
    try:
        return await _patiently(
            lambda: client.workflow_service.describe_worker_deployment(request, timeout=_RPC_TIMEOUT)
        )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None  # no host of it has polled yet
        raise _unavailable(error) from error


def _unavailable(error: RPCError) -> Unavailable:
    if error.status is RPCStatusCode.RESOURCE_EXHAUSTED:
        return Unavailable(f"Temporal has too many requests about this deployment: try again soon ({error.message})")
    return Unavailable(
        f"Temporal says nothing of Worker Deployments ({error.status.name}): {error.message}; they need a server of "
        "version 1.29.1 or newer, and an identity that may read and write them"
    )


_ROLES = {
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT: Role.CURRENT,
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING: Role.RAMPING,
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINING: Role.DRAINING,
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINED: Role.DRAINED,
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_INACTIVE: Role.INACTIVE,
}
