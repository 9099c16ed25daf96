"""What stands in deploy/, read as its tools read it, and held against what a host of ours can be told."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml
from fastapi.routing import APIRoute
from tests.docs.blocks import ROOT
from typer.main import get_command

from agentvisor.cli.commands import app
from agentvisor.host.config import Config, load_config
from agentvisor.host.http import meta

DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent

STOP_SECONDS = 20
"""What a host may take to end after its drain, as docs/rolling-deploys.md says."""

ROUTES = {route.path for route in meta.router.routes if isinstance(route, APIRoute)}


def loaded(path: str) -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / path).read_text()))


def check_command(arguments: Sequence[str]) -> None:
    """Fail unless these are a command of ours with options that it has."""
    command, *rest = arguments
    known = cast("Any", get_command(app)).commands
    assert command in known, f"there is no command {command}"
    options = {option for parameter in known[command].params for option in parameter.opts}
    given = [one for one in rest if one.startswith("--")]
    assert given, f"nothing is said to {command}"
    assert set(given) <= options


def config_of(environment: Mapping[str, str], folder: Path) -> Config:
    """What a host makes of these variables; an error where one of them is none of ours, or its value will not do."""
    return load_config(folder, environ=environment)


def check_stop(seconds: float, config: Config) -> None:
    """Fail unless a host is given the time that it needs to end."""
    least = config.temporal.drain_timeout.total_seconds() + STOP_SECONDS
    assert seconds > least, f"{seconds} s are no longer than the drain and {STOP_SECONDS} s"
