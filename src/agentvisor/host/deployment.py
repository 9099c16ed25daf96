"""A host's version among those of its Worker Deployment: who gets work is set in Temporal, and asked for there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from temporalio.api.enums.v1 import WorkerDeploymentVersionStatus
from temporalio.api.workflowservice.v1 import (
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


async def gets_work(client: Client, version: WorkerDeploymentVersion) -> bool:
    """Whether this version is current or ramping.

    Raises:
        RPCError: Temporal does not answer, or refuses to.
    """
    reply = await _asked(client, version.deployment_name)
    if reply is None:
        return False
    routing = reply.worker_deployment_info.routing_config
    receiving = {routing.current_deployment_version.build_id, routing.ramping_deployment_version.build_id}
    return version.build_id in receiving


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
    service = client.workflow_service
    try:
        if percentage is None:
            await service.set_worker_deployment_current_version(
                SetWorkerDeploymentCurrentVersionRequest(
                    namespace=client.namespace, deployment_name=name, build_id=build, identity=client.identity
                ),
                timeout=_RPC_TIMEOUT,
            )
        else:
            await service.set_worker_deployment_ramping_version(
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
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise NotFound(
                f"Temporal knows no version {build_id!r} of deployment {name!r}: start a host of it first "
                "(temporal.deployment.name, temporal.deployment.build_id)"
            ) from error
        if error.status in (RPCStatusCode.FAILED_PRECONDITION, RPCStatusCode.INVALID_ARGUMENT):
            raise InvalidInput(f"Temporal does not do that: {error.message}") from error
        raise _unavailable(error) from error


async def _described(client: Client, name: str) -> DescribeWorkerDeploymentResponse | None:
    try:
        return await _asked(client, name)
    except RPCError as error:
        raise _unavailable(error) from error


async def _asked(client: Client, name: str) -> DescribeWorkerDeploymentResponse | None:
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=name)
    try:
        return await client.workflow_service.describe_worker_deployment(request, timeout=_RPC_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None  # no host of it has polled yet
        raise


def _unavailable(error: RPCError) -> Unavailable:
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
