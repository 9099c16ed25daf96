"""The connection to Temporal: an address of ours, or Temporal's own environment variables and profiles."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.envconfig import ClientConfig

from agentvisor.core.errors import Unavailable
from agentvisor.host.codec.client import data_converter_of
from agentvisor.host.config import Config


async def client_of(config: Config, *, address: str | None = None) -> Client:
    """The client that a host of this configuration has; every program of ours that reads threads has the same.

    Args:
        config: all of it.
        address: of the server to use instead of the configuration's: of the embedded one.
    """
    return await connect(
        address or config.temporal.address,
        config.temporal.namespace,
        data_converter=data_converter_of(config.encryption),
    )


async def connect(
    address: str | None, namespace: str, *, data_converter: DataConverter = DataConverter.default
) -> Client:
    """Connect to a Temporal server or cluster; `Unavailable` with what was tried."""
    if address is not None:
        return await _connected(
            address, lambda: Client.connect(address, namespace=namespace, data_converter=data_converter)
        )
    profile = ClientConfig.load_client_connect_config()
    target = profile.get("target_host", "localhost:7233")
    return await _connected(target, lambda: Client.connect(**profile, data_converter=data_converter))


async def _connected(target: str, attempt: Callable[[], Awaitable[Client]]) -> Client:
    try:
        return await attempt()
    except RuntimeError as error:
        raise Unavailable(
            f"no Temporal answers at {target}: start it, or give its address "
            f"(temporal.address, TEMPORAL_ADDRESS): {error}"
        ) from error
