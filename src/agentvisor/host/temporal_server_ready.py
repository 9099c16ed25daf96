"""When a Temporal server is ready for AgentVisor: it answers, has the namespace, and knows our search attributes."""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.errors import Unavailable

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
        types = {IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD: "Keyword"}
        commands = " ".join(
            f"--name {name} --type {types.get(kind, 'KeywordList')}" for name, kind in SEARCH_ATTRIBUTES.items()
        )
        raise Unavailable(
            f"Temporal namespace {client.namespace!r} needs AgentVisor's search attributes, and this host may not "
            f"register them ({error.status.name}): temporal operator search-attribute create {commands}",
            namespace=client.namespace,
        ) from error


async def register_search_attributes(client: Client) -> None:
    """Make the client's namespace know our search attributes; those it knows already stay as they are.

    Raises:
        Unavailable: an attribute of one of our names exists with another type.
    """
    present = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    for name, kind in SEARCH_ATTRIBUTES.items():
        if present.custom_attributes.get(name, kind) != kind:
            raise Unavailable(
                f"Temporal namespace {client.namespace!r} has a search attribute {name} of another type than "
                f"{IndexedValueType.Name(kind)}; remove it, or use another namespace (temporal.namespace)",
                namespace=client.namespace,
            )
    missing = {name: kind for name, kind in SEARCH_ATTRIBUTES.items() if name not in present.custom_attributes}
    if not missing:
        return
    try:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(search_attributes=missing, namespace=client.namespace)
        )
    except RPCError as error:
        # Another host was faster.
        if error.status is not RPCStatusCode.ALREADY_EXISTS:
            raise
