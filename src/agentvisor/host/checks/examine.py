"""All checks, one after the other, each with a deadline; what a check needs and is not there skips it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from types import MappingProxyType

from temporalio.api.workflowservice.v1 import DescribeNamespaceResponse
from temporalio.client import Client

from agentvisor.core.errors import AgentVisorError, Internal
from agentvisor.host.checks import (
    agents,
    connection,
    data_folder,
    encryption,
    hosts,
    keys,
    limits,
    namespace,
    ports,
    storage,
    write,
)
from agentvisor.host.checks import search_attributes as attributes
from agentvisor.host.checks.blocking import apart
from agentvisor.host.checks.finding import Finding, failed, skipped
from agentvisor.host.config import Config


class Examination:
    """Of one host's configuration, and of what is beneath the host."""

    def __init__(self, config: Config, *, patience: float) -> None:
        self._config = config
        self._patience = patience
        """Seconds for each check."""
        self._client: Client | None = None
        self._described: DescribeNamespaceResponse | None = None
        self.gave_up = False
        """Whether a check did not end: something of it may still wait."""

    async def findings(self, skip: Collection[str] = ()) -> AsyncIterator[Finding]:
        """What each check finds, once it has ended; those named in `skip` are not made."""
        for name, check in _CHECKS.items():
            if name not in skip:
                for finding in await self._within(name, check(self)):
                    yield finding

    async def _within(self, name: str, check: AsyncIterator[Finding]) -> list[Finding]:
        found: list[Finding] = []
        seconds = self._patience
        if name == agents.NAME:
            # An agent has its own deadline; its guest has to start first.
            seconds += self._config.guest.operation_timeout.total_seconds() * len(self._config.agents)
        try:
            async with asyncio.timeout(seconds):
                async for finding in check:
                    found.append(finding)  # noqa: PERF401 - what was found before the deadline stays
        except TimeoutError:
            self.gave_up = True
            found.append(
                failed(name, f"no answer within {seconds:g} s", "is it overloaded, or does a proxy hold it back?")
            )
        except AgentVisorError as error:
            found.append(failed(name, error.message, "", type(error)))
        except Exception as error:  # noqa: BLE001 - the other checks are made all the same
            found.append(
                failed(name, f"{type(error).__name__}: {error}", "this is a defect: please report it", Internal)
            )
        return found

    # --- the checks --------------------------------------------------------------------------------------------------

    async def keys(self) -> AsyncIterator[Finding]:
        for finding in keys.check_keys(self._config):
            yield finding

    async def data_folder(self) -> AsyncIterator[Finding]:
        yield await apart(lambda: data_folder.check_data_folder(self._config))

    def ports(self) -> AsyncIterator[Finding]:
        return ports.check_ports(self._config)

    async def connection(self) -> AsyncIterator[Finding]:
        finding, self._client = await connection.check_connection(self._config, patience=self._patience)
        yield finding

    async def namespace(self) -> AsyncIterator[Finding]:
        if self._client is None:
            yield skipped(namespace.NAME, _NO_CONNECTION)
            return
        finding, self._described = await namespace.check_namespace(self._client)
        yield finding

    async def search_attributes(self) -> AsyncIterator[Finding]:
        client = self._client
        yield (
            await attributes.check_search_attributes(client)
            if client and self._described
            else self._skipped(attributes.NAME)
        )

    async def limits(self) -> AsyncIterator[Finding]:
        described = self._described
        yield limits.check_limits(self._config, described) if described else self._skipped(limits.NAME)

    async def write(self) -> AsyncIterator[Finding]:
        if self._client is None or self._described is None:
            yield self._skipped(write.NAME)
            return
        async for finding in write.check_write(self._config, self._client):
            yield finding

    async def encryption(self) -> AsyncIterator[Finding]:
        client = self._client
        yield (
            await encryption.check_encryption(self._config, client)
            if client and self._described
            else self._skipped(encryption.NAME)
        )

    async def hosts(self) -> AsyncIterator[Finding]:
        client = self._client
        yield await hosts.check_hosts(self._config, client) if client and self._described else self._skipped(hosts.NAME)

    async def storage(self) -> AsyncIterator[Finding]:
        yield await storage.check_storage(self._config)

    def agents(self) -> AsyncIterator[Finding]:
        return agents.check_agents(self._config)

    def _skipped(self, name: str) -> Finding:
        return skipped(name, _NO_CONNECTION if self._client is None else "needs the namespace")


_NO_CONNECTION = "needs the connection"

_CHECKS: Mapping[str, Callable[[Examination], AsyncIterator[Finding]]] = MappingProxyType(
    {
        keys.NAME: Examination.keys,
        data_folder.NAME: Examination.data_folder,
        ports.NAME: Examination.ports,
        connection.NAME: Examination.connection,
        namespace.NAME: Examination.namespace,
        attributes.NAME: Examination.search_attributes,
        limits.NAME: Examination.limits,
        write.NAME: Examination.write,
        encryption.NAME: Examination.encryption,
        hosts.NAME: Examination.hosts,
        storage.NAME: Examination.storage,
        agents.NAME: Examination.agents,
    }
)

NAMES = tuple(_CHECKS)
"""Of all checks, in the order in which they are made; `write` tells of the clock, too."""
