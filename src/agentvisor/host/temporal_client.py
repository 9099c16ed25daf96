"""The connection to Temporal: an address of ours, or Temporal's own environment variables and profiles."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from agentvisor.core.errors import Unavailable
from agentvisor.host.config import Config


async def client_of(config: Config, *, address: str | None = None) -> Client:
    """The client that a host of this configuration has; every program of ours that reads threads has the same.

    Args:
        config: all of it.
        address: of the server to use instead of the configuration's: of the embedded one.
    """
    _hear_core()
    return await connect(address or config.temporal.address, config.temporal.namespace)


def _hear_core() -> None:
    """Have the SDK's core log as all other libraries do (logs.py), not on the console by itself."""
    logger = logging.getLogger("temporalio.core")
    forwarding = LogForwardingConfig(logger, append_target_to_name=False, append_log_fields_to_message=False)
    logs = LoggingConfig(TelemetryFilter(core_level="WARN", other_level="ERROR"), forwarding)
    with suppress(RuntimeError):  # whoever embeds a host has set up the SDK for himself
        Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=logs)))


async def connect(address: str | None, namespace: str) -> Client:
    """Connect to a Temporal server or cluster; `Unavailable` with what was tried."""
    if address is not None:
        return await _connected(address, lambda: Client.connect(address, namespace=namespace))
    profile = ClientConfig.load_client_connect_config()
    target = profile.get("target_host", "localhost:7233")
    return await _connected(target, lambda: Client.connect(**profile))


async def _connected(target: str, attempt: Callable[[], Awaitable[Client]]) -> Client:
    try:
        return await attempt()
    except RuntimeError as error:
        raise Unavailable(
            f"no Temporal answers at {target}: start it, or give its address "
            f"(temporal.address, TEMPORAL_ADDRESS): {error}"
        ) from error
