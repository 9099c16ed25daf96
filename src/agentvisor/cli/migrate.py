"""`agentvisor migrate`: after an upgrade, takes threads that sleep along to the new version."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import Annotated

import typer

from agentvisor.cli.dev import ConfigPath, TemporalAddress
from agentvisor.host.config import load_config


def migrate(
    *,
    config: ConfigPath = None,
    temporal_address: TemporalAddress = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also threads that are of this version: their histories begin anew.")
    ] = False,
) -> None:
    """Ask every thread of an older version to continue on this one; a host of this version must be running."""
    from agentvisor.host.temporal_client import client_beside
    from agentvisor.host.threads_migrate import Migration, migrate_all

    async def migrated() -> Counter[Migration]:
        return await migrate_all(await client_beside(loaded), everything=everything)

    loaded = load_config(config, environ=os.environ, overrides={"temporal.address": temporal_address})
    outcomes = asyncio.run(migrated())
    for outcome, number in outcomes.items():
        typer.echo(f"{number:6d}  {outcome.value}")
    if not outcomes:
        typer.echo("there are no threads")
