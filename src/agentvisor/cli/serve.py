"""`agentvisor serve`: one host of a Temporal cluster, for production."""

from __future__ import annotations

import os

from agentvisor.cli.dev import ConfigPath, HostName, PortNumber, TemporalAddress, tell_ready
from agentvisor.cli.service_manager import READY, STOPPING, notifier
from agentvisor.host.config import load_config
from agentvisor.host.log_secrets import secrets_of
from agentvisor.host.logs import configure_logs


def serve(
    *,
    config: ConfigPath = None,
    host: HostName = None,
    port: PortNumber = None,
    temporal_address: TemporalAddress = None,
) -> None:
    """Start a host that takes its threads from a Temporal cluster."""
    # Loading the configuration logs already, and standard output is for the line that says ready.
    configure_logs()
    from agentvisor.host.app import run_serve

    overrides: dict[str, object] = {
        "http.host": host,
        "http.port": port,
        "temporal.address": temporal_address,
    }
    notify = notifier(os.environ)

    def ready(url: str) -> None:
        tell_ready(url)
        notify(f"{READY}\nSTATUS=Ready at {url}")

    loaded = load_config(config, environ=os.environ, overrides=overrides)
    configure_logs(loaded.log, secrets=secrets_of(loaded))
    run_serve(loaded, ready=ready, stopping=lambda: notify(f"{STOPPING}\nSTATUS=Giving its runs to other hosts"))
