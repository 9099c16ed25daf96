"""`agentvisor setup`: registers what a Temporal cluster needs, and says what it did."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Annotated

import typer

from agentvisor.cli.dev import ConfigPath, TemporalAddress
from agentvisor.cli.show import print_json
from agentvisor.core.errors import InvalidInput
from agentvisor.host.config import Config, load_config
from agentvisor.host.config_units import parse_duration
from agentvisor.host.logs import configure_logs

if TYPE_CHECKING:  # Temporal's client takes its time to load
    from datetime import timedelta

    from agentvisor.host.temporal_server_setup import Step


def setup(
    *,
    config: ConfigPath = None,
    temporal_address: TemporalAddress = None,
    namespace_retention: Annotated[
        str | None,
        typer.Option(
            "--namespace-retention",
            metavar="DURATION",
            help="Make the namespace, if it is missing; executions that have ended are kept for so long, e.g. 7d.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a list, for programs.")] = False,
) -> None:
    """Register what hosts need in Temporal: search attributes, and the namespace if that is asked for."""
    configure_logs()
    retention = None if namespace_retention is None else _retention(namespace_retention)
    loaded = load_config(config, environ=os.environ, overrides={"temporal.address": temporal_address})
    steps = asyncio.run(_done(loaded, retention, dry_run=dry_run))
    if json:
        print_json([{"what": one.what, "done": one.done, "changed": one.changed} for one in steps])
        return
    for step in steps:
        typer.echo(f"{step.what}: {step.done}")


def _retention(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InvalidInput(f"--namespace-retention: {error}") from error


async def _done(config: Config, retention: timedelta | None, *, dry_run: bool) -> list[Step]:
    from agentvisor.host.temporal_client import client_beside
    from agentvisor.host.temporal_server_setup import set_up

    return [step async for step in set_up(await client_beside(config), retention=retention, dry_run=dry_run)]
