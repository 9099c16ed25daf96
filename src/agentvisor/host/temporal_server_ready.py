"""When a Temporal server is ready for AgentVisor: it answers, has the namespace, and knows our search attributes."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import timedelta
from types import MappingProxyType

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.errors import NotFound, Unavailable

SEARCH_ATTRIBUTES: Mapping[str, IndexedValueType.ValueType] = MappingProxyType(
    {
        "AgentVisorStatus": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
        "AgentVisorAgent": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
        "AgentVisorOwner": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
        "AgentVisorMetadata": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
    }
)
"""What thread search asks Temporal's visibility for."""

_POLL_SECONDS = 0.02


async def wait_until_ready(address: str, *, namespace: str) -> None:
    """Return once the server at `address` serves threads; callers set the deadline, this waits for ever."""
    while True:
        try:
            client = await Client.connect(address, namespace=namespace)
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=namespace))
            await register_search_attributes(client)
        except (RPCError, RuntimeError):
            # RuntimeError is what Client.connect raises while nothing listens yet.
            await asyncio.sleep(_POLL_SECONDS)
        else:
            return


async def require_search_attributes(client: Client) -> None:
    """Register our search attributes, or raise `Unavailable` with what an administrator has to do."""
    try:
        await register_search_attributes(client)
    except RPCError as error:
        if error.status in _NO_RIGHT and not await unknown_to_visibility(client):
            return  # they are there, which is all that a host needs
        if error.status is RPCStatusCode.NOT_FOUND:
            raise no_namespace(client.namespace) from error
        raise Unavailable(
            f"Temporal namespace {client.namespace!r} needs AgentVisor's search attributes, and this host may not "
            f"register them ({error.status.name}): {how_to_register(client.namespace, SEARCH_ATTRIBUTES)}",
            namespace=client.namespace,
        ) from error


def no_namespace(namespace: str) -> NotFound:
    """The error for a namespace that is not there."""
    return NotFound(
        f"Temporal has no namespace {namespace!r}: make it with `agentvisor setup --namespace-retention 7d`, or name "
        "another (temporal.namespace, TEMPORAL_NAMESPACE)"
    )


async def register_search_attributes(client: Client) -> list[str]:
    """Make the client's namespace know our search attributes; those it knows already stay as they are.

    Returns the names of those that are new.

    Raises:
        Unavailable: an attribute of one of our names exists with another type.
    """
    missing = await missing_search_attributes(client)
    if not missing:
        return []
    try:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                search_attributes={name: SEARCH_ATTRIBUTES[name] for name in missing}, namespace=client.namespace
            )
        )
    except RPCError as error:
        # Another host was faster.
        if error.status is not RPCStatusCode.ALREADY_EXISTS:
            raise
    return missing


async def missing_search_attributes(client: Client) -> list[str]:
    """The names of those that the namespace does not know; `Unavailable` where it knows one as something else."""
    present = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace), timeout=_RPC_TIMEOUT
    )
    for name, kind in SEARCH_ATTRIBUTES.items():
        if present.custom_attributes.get(name, kind) != kind:
            raise Unavailable(
                f"Temporal namespace {client.namespace!r} has a search attribute {name} of another type than "
                f"{type_name(kind)}; remove it, or use another namespace (temporal.namespace)",
                namespace=client.namespace,
            )
    return [name for name in SEARCH_ATTRIBUTES if name not in present.custom_attributes]


async def unknown_to_visibility(client: Client) -> list[str]:
    """The names of those that no search knows: for who may not list them. Their types are not seen."""
    unknown: list[str] = []
    for name in SEARCH_ATTRIBUTES:
        try:
            await client.count_workflows(f"{name} = 'x'", rpc_timeout=_RPC_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.INVALID_ARGUMENT:
                raise
            unknown.append(name)
    return unknown


def how_to_register(namespace: str, names: Iterable[str]) -> str:
    """The command for somebody who may."""
    each = " ".join(f"--name {name} --type {type_name(SEARCH_ATTRIBUTES[name])}" for name in names)
    return (
        f"temporal operator search-attribute create --namespace {namespace} {each} (in Temporal Cloud: on the "
        "namespace's page, or with tcld namespace search-attributes add)"
    )


def type_name(kind: IndexedValueType.ValueType) -> str:
    """As Temporal's command line writes it: KeywordList."""
    return IndexedValueType.Name(kind).removeprefix("INDEXED_VALUE_TYPE_").title().replace("_", "")


_RPC_TIMEOUT = timedelta(seconds=10)
_NO_RIGHT = (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.UNIMPLEMENTED)
