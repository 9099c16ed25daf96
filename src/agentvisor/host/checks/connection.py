"""Check `connection`: Temporal answers where it is said to be, and lets this host in."""

from __future__ import annotations

import asyncio

from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError

from agentvisor.core.errors import AgentVisorError
from agentvisor.host.checks.finding import Finding, failed, ok, skipped, warning
from agentvisor.host.config import Config
from agentvisor.host.ports import Port, require_free
from agentvisor.host.temporal_client import address_beside, client_of
from agentvisor.host.temporal_client_address import connection_of, embedded
from agentvisor.host.temporal_client_errors import no_answer
from agentvisor.host.temporal_server import IP, temporal_binary

NAME = "connection"


async def check_connection(config: Config, *, patience: float) -> tuple[Finding, Client | None]:
    """The client for the other checks, where there is one: the one that a host would have."""
    address = address_beside(config)
    if address is not None and _is_free(config.dev.temporal_port):
        return _to_be_started(config, address), None
    try:
        # Something that listens and says nothing is to be told as that, before the check's own deadline.
        async with asyncio.timeout(patience * 0.9):
            client = await client_of(config, address=address)
            info = await client.workflow_service.get_system_info(GetSystemInfoRequest())
    except TimeoutError:
        to = connection_of(config) if address is None else embedded(address, config.temporal.namespace)
        return _not_connected(no_answer(to, patience)), None
    except RPCError as error:
        return failed(NAME, f"{error.status.name}: {error.message}", "is it Temporal?"), None
    except AgentVisorError as error:
        return _not_connected(error), None
    seen = f"Temporal {info.server_version} at {_described(config, address)}"
    if address is None and (found := connection_of(config)).api_key and not found.tls:
        advice = "whoever is on the way reads the API key: switch TLS on, unless a proxy beside this host does it"
        return warning(NAME, seen, f"{advice} (temporal.tls.enabled, TEMPORAL_TLS)"), client
    return ok(NAME, seen), client


def _not_connected(error: AgentVisorError) -> Finding:
    what, _, advice = error.message.partition(" (Failed client connect")[0].partition(": ")
    return failed(NAME, what, advice, type(error))


def _described(config: Config, address: str | None) -> str:
    if address is not None:
        return f"{address}, the embedded one (no address is set)"
    found = connection_of(config)
    said = {name: f" ({where})" for name, where in found.said_by.items()}
    parts = [
        f"{found.address}{said.get('address', '')}",
        f"namespace {found.namespace}{said.get('namespace', '')}",
        "with TLS" if found.tls else "without TLS",
        f"with an API key{said.get('api_key', '')}" if found.api_key else "without an API key",
    ]
    return ", ".join(parts)


def _is_free(port: int) -> bool:
    try:
        require_free(IP, Port(port, "Temporal", None, "dev.temporal_port"))
    except AgentVisorError:
        return False
    return True


def _to_be_started(config: Config, address: str) -> Finding:
    """Nothing says where Temporal is, and none runs: it is `agentvisor dev` that is meant."""
    try:
        require_free(
            IP, Port(config.dev.temporal_ui_port, "Temporal's UI", "--temporal-ui-port", "dev.temporal_ui_port")
        )
        binary = temporal_binary()
    except AgentVisorError as error:
        return failed(NAME, error.message, "or set temporal.address to a cluster", type(error))
    return skipped(
        NAME,
        f"no Temporal runs at {address}, and no address is set (temporal.address, TEMPORAL_ADDRESS): `agentvisor dev` "
        f"starts one of its own ({binary})",
    )
