"""The connection to Temporal: an address of ours, or Temporal's own environment variables and profiles."""

from __future__ import annotations

import asyncio

from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.service import PayloadLimitsConfig

from agentvisor.host.codec.client import data_converter_of
from agentvisor.host.config import Config
from agentvisor.host.temporal_client_address import DEFAULT_ADDRESS, Connection, connection_of, embedded, is_named
from agentvisor.host.temporal_client_errors import no_answer, not_connected
from agentvisor.host.temporal_core import set_up_core

_PATIENCE = 20.0
"""Seconds for a server that takes connections to say what it is; Temporal's client itself would wait for ever."""

# What is too large is refused before it is sent, by limits of ours (storage.*), and those are above these warnings.
_NO_WARNINGS = PayloadLimitsConfig(payloads_warn_size=0, memo_warn_size=0)


async def client_of(config: Config, *, address: str | None = None) -> Client:
    """The client that a host of this configuration has; every program of ours that reads threads has the same.

    Args:
        config: all of it.
        address: of the embedded server, to which nothing of the configuration's but the namespace applies.
    """
    set_up_core()
    namespace = config.temporal.namespace
    connection = connection_of(config) if address is None else embedded(address, namespace)
    return await connected(connection, data_converter=data_converter_of(config.encryption))


async def client_beside(config: Config) -> Client:
    """The client of a command beside a host: of the embedded server's address where nothing says where Temporal is."""
    return await client_of(config, address=address_beside(config))


def address_beside(config: Config) -> str | None:
    """Of the embedded server, where it is the one that a configuration means; None: what is configured counts."""
    return None if is_named(config) else f"127.0.0.1:{config.dev.temporal_port}"


async def connect(
    address: str | None, namespace: str, *, data_converter: DataConverter = DataConverter.default
) -> Client:
    """Connect to a server in the clear; `Unavailable` with what was tried."""
    return await connected(Connection(address or DEFAULT_ADDRESS, namespace), data_converter=data_converter)


async def connected(
    connection: Connection, *, patience: float = _PATIENCE, data_converter: DataConverter = DataConverter.default
) -> Client:
    """Connect, or say why that cannot be: `Unavailable`, or `PermissionRefused` where the server lets nobody in."""
    try:
        async with asyncio.timeout(patience):
            return await Client.connect(
                connection.address,
                namespace=connection.namespace,
                # None would mean: TLS as soon as there is an API key. Whether there is, has been decided.
                tls=connection.tls or False,
                api_key=connection.api_key,
                rpc_metadata=connection.metadata,
                payload_limits=_NO_WARNINGS,
                data_converter=data_converter,
            )
    except TimeoutError as error:
        raise no_answer(connection, patience) from error
    except (RuntimeError, ValueError) as error:
        raise not_connected(connection, error) from error
