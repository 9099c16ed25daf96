"""`agentvisor doctor`: prints what each check beneath a host finds, and what to do."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentvisor.cli.dev import ConfigPath, HostName, PortNumber, TemporalAddress
from agentvisor.cli.exits import EXIT_CODES
from agentvisor.cli.show import print_json
from agentvisor.core.errors import InvalidInput
from agentvisor.host.config import load_config
from agentvisor.host.logs import configure_logs

if TYPE_CHECKING:  # Temporal's client takes its time to load
    from agentvisor.host.checks.examine import Examination
    from agentvisor.host.checks.finding import Finding

_COLORS = {"ok": "green", "warning": "yellow", "failed": "red", "skipped": "dim"}


def doctor(
    *,
    config: ConfigPath = None,
    host: HostName = None,
    port: PortNumber = None,
    temporal_address: TemporalAddress = None,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="As of dev. [default: .agentvisor]")] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option("--skip", metavar="CHECK", help="A check that is not to be made, e.g. write; may be repeated."),
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", min=1, max=600, help="Seconds that a check may take.")] = 15,
    json: Annotated[bool, typer.Option("--json", help="Print a list, for programs.")] = False,
) -> None:
    """Check what a host needs: Temporal, its namespace and limits, storage, disk, ports, clock, agents."""
    configure_logs()
    from agentvisor.host.checks.examine import NAMES, Examination

    if unknown := sorted(set(skip or ()) - set(NAMES)):
        raise InvalidInput(f"--skip {unknown[0]}: there is no such check; there are {', '.join(NAMES)}")
    overrides: dict[str, object] = {
        "http.host": host,
        "http.port": port,
        "temporal.address": temporal_address,
        "dev.data_dir": None if data_dir is None else data_dir.absolute(),
    }
    loaded = load_config(config, environ=os.environ, overrides=overrides)
    examination = Examination(loaded, patience=timeout)
    asyncio.run(_told(examination, skip or [], json=json))


async def _told(examination: Examination, skip: list[str], *, json: bool) -> None:
    from agentvisor.host.checks.finding import Verdict

    found: list[Finding] = []
    async for finding in examination.findings(skip):
        found.append(finding)
        if not json:
            _print(finding)
    if json:
        print_json(
            [{"check": one.name, "verdict": one.verdict.value, "seen": one.seen, "advice": one.advice} for one in found]
        )
    failures = [one for one in found if one.verdict is Verdict.FAILED]
    # Checks stand in the order of causes: the first failure explains the others.
    code = EXIT_CODES[failures[0].error] if failures else 0
    if examination.gave_up:
        # What hangs in the kernel cannot be waited for, and would be.
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def _print(finding: Finding) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    verdict = finding.verdict.value
    console.print(f"[{_COLORS[verdict]}]{verdict:<8}[/] {finding.name:<18} {escape(finding.seen)}")
    if finding.advice:
        console.print(f"{'':<27} -> {escape(finding.advice)}")
