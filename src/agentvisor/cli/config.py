"""`agentvisor config`: prints the configuration in force, and where each value came from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from agentvisor.cli.dev import ConfigPath, HostName, PortNumber, TemporalAddress
from agentvisor.cli.show import print_json, print_table
from agentvisor.host.config import Config, load_with_origins
from agentvisor.host.logs import configure_logs
from agentvisor.host.render_typed import Json

if TYPE_CHECKING:
    from agentvisor.host.config_view import Shown


def config(
    *,
    config: ConfigPath = None,
    host: HostName = None,
    port: PortNumber = None,
    temporal_address: TemporalAddress = None,
    temporal_port: Annotated[int | None, typer.Option("--temporal-port", help="As of dev.")] = None,
    temporal_ui_port: Annotated[int | None, typer.Option("--temporal-ui-port", help="As of dev.")] = None,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="As of dev.")] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only what is not left at its default.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a table of keys, for programs.")] = False,
) -> None:
    """Show the configuration that dev and serve would have here, with these options; secrets are not shown."""
    from agentvisor.host.config_view import view

    configure_logs()
    overrides: dict[str, object] = {
        "http.host": host,
        "http.port": port,
        "temporal.address": temporal_address,
        "dev.temporal_port": temporal_port,
        "dev.temporal_ui_port": temporal_ui_port,
        "dev.data_dir": None if data_dir is None else data_dir.absolute(),
    }
    loaded, origins = load_with_origins(config, environ=os.environ, overrides=overrides)
    values = [one for one in view(loaded, origins) if not changed or one.origin.kind != "default"]
    connection = _connection(loaded)
    if json:
        print_json({"settings": {one.key: _as_json(one) for one in values}, "temporal": cast("Json", connection)})
        return
    print_table(("key", "value", "from"), [(one.key, one.text, str(one.origin)) for one in values])
    print()
    for name, said in connection.items():
        typer.echo(f"{name}: {said}")


def _as_json(one: Shown) -> Json:
    origin: dict[str, Json] = {"kind": one.origin.kind}
    if one.origin.name:
        origin["name"] = one.origin.name
    if one.origin.line is not None:
        origin["line"] = one.origin.line
    return {"value": cast("Json", one.value), "secret": one.is_secret, "from": origin}


def _connection(loaded: Config) -> dict[str, str]:
    """How `serve` reaches Temporal: our settings and Temporal's own configuration together."""
    from agentvisor.host.temporal_client_address import connection_of

    found = connection_of(loaded)

    def of(name: str, value: str) -> str:
        return f"{value} ({found.said_by[name]})" if name in found.said_by else value

    told = {
        "Temporal's address": of("address", found.address),
        "Temporal's namespace": of("namespace", found.namespace),
        "TLS": of("tls", "on" if found.tls else "off"),
        "API key": of("api_key", "set (not shown)" if found.api_key else "not set"),
    }
    if not loaded.temporal.is_elsewhere:
        told["agentvisor dev"] = f"starts a Temporal of its own, at 127.0.0.1:{loaded.dev.temporal_port}"
    if found.passed_over:
        told["do not count"] = f"{', '.join(found.passed_over)}, because temporal.address is set, and no profile"
    return told
