"""Check `namespace`: it is there, takes updates, and says how long it keeps what has ended."""

from __future__ import annotations

from datetime import timedelta

from temporalio.api.enums.v1 import NamespaceState
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, DescribeNamespaceResponse
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.errors import InvalidInput, NotFound, PermissionRefused
from agentvisor.host.checks.finding import Finding, failed, ok, warning

NAME = "namespace"
_RPC_TIMEOUT = timedelta(seconds=5)


async def check_namespace(client: Client) -> tuple[Finding, DescribeNamespaceResponse | None]:
    """What the server says of it, for the other checks."""
    name = client.namespace
    try:
        request = DescribeNamespaceRequest(namespace=name)
        described = await client.workflow_service.describe_namespace(request, timeout=_RPC_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return (
                failed(
                    NAME,
                    f"{name!r} does not exist",
                    "make it with: agentvisor setup --namespace-retention 7d; or name another: temporal.namespace, "
                    "TEMPORAL_NAMESPACE",
                    NotFound,
                ),
                None,
            )
        return _unseen(name, error), None
    if described.namespace_info.state not in (_REGISTERED, _UNSAID):
        state = NamespaceState.Name(described.namespace_info.state).removeprefix("NAMESPACE_STATE_").lower()
        return failed(NAME, f"{name!r} is {state}", "name another: temporal.namespace", InvalidInput), described
    if not described.namespace_info.capabilities.sync_update:
        return (
            warning(
                NAME,
                f"{name!r} does not say that it takes updates of workflows",
                "runs are started by updates: use Temporal 1.25 or newer",
            ),
            described,
        )
    kept = timedelta(seconds=described.config.workflow_execution_retention_ttl.seconds)
    return ok(NAME, f"{name!r} is there; executions that have ended are kept for {_days(kept)}"), described


def _unseen(name: str, error: RPCError) -> Finding:
    if error.status in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED):
        return failed(
            NAME,
            f"{name!r}: {error.status.name}: {error.message}",
            "is the name right (temporal.namespace, TEMPORAL_NAMESPACE; in Temporal Cloud: name.account), and "
            "the API key or certificate of this namespace?",
            PermissionRefused,
        )
    return failed(NAME, f"{name!r}: {error.status.name}: {error.message}", "is the server well?")


def _days(kept: timedelta) -> str:
    return f"{kept.days} days" if kept.days > 1 else f"{kept.total_seconds() / 3600:g} hours"


_REGISTERED, _UNSAID = NamespaceState.NAMESPACE_STATE_REGISTERED, NamespaceState.NAMESPACE_STATE_UNSPECIFIED
