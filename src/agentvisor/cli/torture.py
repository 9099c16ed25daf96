"""`agentvisor torture`: many threads under random kills, held against what was written outside; fails on any loss."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer


def torture(
    *,
    minutes: Annotated[float, typer.Option(help="How long to kill.", min=0.05)] = 1.0,
    seed: Annotated[int | None, typer.Option(help="Chooses the mix of faults. Default: the clock.")] = None,
    threads: Annotated[int, typer.Option(help="Threads at a time.", min=1)] = 50,
    hosts: Annotated[int, typer.Option(help="Hosts of one Temporal server.", min=1)] = 2,
    pause: Annotated[float, typer.Option(help="Seconds between two faults, on average.", min=0.05)] = 1.2,
    patience: Annotated[float, typer.Option(help="Seconds without progress after which a run is stuck.", min=0)] = 120,
    keep: Annotated[Path | None, typer.Option(help="Keep records and logs in this folder.")] = None,
) -> None:
    """Kill agents, guests, hosts and Temporal under many threads, and prove that nothing acknowledged is lost."""
    from agentvisor.cli.torturing.running import Plan, run_torture

    plan = Plan(minutes, int(time.time()) if seed is None else seed, threads, hosts, pause, patience)
    if not run_torture(plan, keep):
        raise typer.Exit(1)
