"""`agentvisor dev`: everything on this machine with one command, reloading when the agents' files change."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from agentvisor.host.config import load_config
from agentvisor.host.log_secrets import secrets_of
from agentvisor.host.logs import configure_logs

ConfigPath = Annotated[
    Path | None,
    typer.Option("--config", help="agentvisor.yaml or langgraph.json, or a folder with one. Default: this folder."),
]
HostName = Annotated[str | None, typer.Option("--host", help="Address to listen on. Default: 127.0.0.1.")]
PortNumber = Annotated[int | None, typer.Option("--port", help="Port of HTTP. Default: 8090.")]
TemporalAddress = Annotated[
    str | None,
    typer.Option(
        "--temporal-address",
        help="host:port of Temporal. Default: as temporal.address, TEMPORAL_ADDRESS or a profile says, "
        "else localhost:7233.",
    ),
]


def dev(
    *,
    config: ConfigPath = None,
    host: HostName = None,
    port: PortNumber = None,
    temporal_port: Annotated[
        int | None, typer.Option("--temporal-port", help="Port of the Temporal server. Default: 7233.")
    ] = None,
    temporal_ui_port: Annotated[
        int | None, typer.Option("--temporal-ui-port", help="Port of Temporal's web page. Default: 8233.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Folder of Temporal's database. Default: .agentvisor.")
    ] = None,
    temporal_address: Annotated[
        str | None,
        typer.Option("--temporal-address", help="host:port of a Temporal that runs already. Default: start one."),
    ] = None,
    no_reload: Annotated[bool, typer.Option("--no-reload", help="Do not reload agents whose files change.")] = False,
) -> None:
    """Start a host with its own Temporal server, for developing agents."""
    # Loading the configuration logs already, and standard output is for the line that says ready.
    configure_logs()
    from agentvisor.host.app import run_dev

    overrides: dict[str, object] = {
        "http.host": host,
        "http.port": port,
        "dev.temporal_port": temporal_port,
        "dev.temporal_ui_port": temporal_ui_port,
        # Given on the command line, it is relative to where that was typed.
        "dev.data_dir": None if data_dir is None else data_dir.absolute(),
        "temporal.address": temporal_address,
    }
    loaded = load_config(config, environ=os.environ, overrides=overrides)
    configure_logs(loaded.log, secrets=secrets_of(loaded))
    if not loaded.agents:
        print(no_agents(loaded.base_dir), file=sys.stderr)
    run_dev(loaded, reload=not no_reload, ready=tell_ready)


def no_agents(folder: Path) -> str:
    """What to do where nothing can be run: mostly it is the wrong folder."""
    return (
        f"agentvisor: no agents are configured in {folder}: add one to {folder / 'agentvisor.yaml'}, as in\n"
        "  agents:\n"
        "    agent: ./agent.py:graph\n"
        "and start `agentvisor dev` again, or start it with --config FOLDER"
    )


def tell_ready(url: str) -> None:
    """The line that says that requests are accepted; programs wait for it."""
    print(f"AgentVisor ready at {url}", flush=True)
