"""`agentvisor deployment`: which version of the hosts gets the work (Temporal's Worker Deployments)."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

import typer

from agentvisor.cli.dev import ConfigPath, TemporalAddress
from agentvisor.core.errors import InvalidInput
from agentvisor.host.config import Config, load_config

app = typer.Typer(help="Worker versioning: which version of the hosts gets the work.", no_args_is_help=True)

Name = Annotated[
    str | None, typer.Option("--name", help="Of the deployment. [default: temporal.deployment.name of the config]")
]


def show(
    *,
    config: ConfigPath = None,
    temporal_address: TemporalAddress = None,
    name: Name = None,
) -> None:
    """List the versions of the deployment: which is current, ramping, draining or drained."""
    from agentvisor.host.deployment import Role, versions
    from agentvisor.host.temporal_client import client_beside

    loaded = _loaded(config, temporal_address)
    deployment = _named(loaded, name)

    async def asked() -> list[str]:
        client = await client_beside(loaded)
        return [
            f"{one.role.value:9s}  {one.build_id}" + (f"  {one.percentage:g} %" if one.role is Role.RAMPING else "")
            for one in await versions(client, deployment)
        ]

    lines = asyncio.run(asked())
    for line in lines:
        typer.echo(line)
    if not lines:
        typer.echo(f"no host of deployment {deployment!r} has polled yet")


def promote(
    build_id: Annotated[
        str | None,
        typer.Argument(help="The version; `unversioned` for none. [default: temporal.deployment.build_id]"),
    ] = None,
    *,
    percentage: Annotated[
        float | None, typer.Option("--percentage", help="Give it so much of the threads, and the current one the rest.")
    ] = None,
    config: ConfigPath = None,
    temporal_address: TemporalAddress = None,
    name: Name = None,
) -> None:
    """Make a version current: from now on its hosts get the work, of threads that are there already, too."""
    from agentvisor.host.deployment import promote as promoted
    from agentvisor.host.temporal_client import client_beside

    loaded = _loaded(config, temporal_address)
    deployment, build = _named(loaded, name), build_id or loaded.temporal.deployment.build_id
    if build is None:
        raise InvalidInput("which version? Give its build id, or set temporal.deployment.build_id")

    async def told() -> None:
        client = await client_beside(loaded)
        await promoted(client, deployment, build, percentage=percentage)

    asyncio.run(told())
    share = "is current" if percentage is None else f"gets {percentage:g} % of the threads"
    typer.echo(f"version {build} of {deployment} {share}")


def _loaded(config: ConfigPath, temporal_address: str | None) -> Config:
    return load_config(config, environ=os.environ, overrides={"temporal.address": temporal_address})


def _named(config: Config, name: str | None) -> str:
    found = name or config.temporal.deployment.name
    if found is None:
        raise InvalidInput("which deployment? Give --name, or set temporal.deployment.name")
    return found
