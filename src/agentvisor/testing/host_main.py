"""The host under test: the real one, whose guests reach it through a proxy (proxy.py), where faults happen.

`python -m agentvisor.testing.host_main CONFIG OVERRIDES RECORDS TEMPORAL_PARENT`, started by the pytest fixtures.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import grpc.aio

from agentvisor.host.app import run_dev
from agentvisor.host.config import load_config
from agentvisor.host.log_secrets import secrets_of
from agentvisor.host.logs import configure_logs
from agentvisor.host.rpc.guest_stream import OPTIONS
from agentvisor.host.sandboxes.process import start_process
from agentvisor.protocol.v1.guest_pb2 import GuestSetup
from agentvisor.protocol.v1.guest_pb2_grpc import add_GuestHostServicer_to_server
from agentvisor.testing.process import READY
from agentvisor.testing.proxy import GuestProxy


def main() -> None:
    """Run until SIGTERM."""
    configure_logs(json=True)
    place, overrides, records, temporal_parent = sys.argv[1:]
    config = load_config(Path(place), environ=os.environ, overrides=json.loads(overrides))
    configure_logs(config.log, secrets=secrets_of(config), json=True)
    sandbox = ProxiedSandbox(Path(records), int(temporal_parent))
    run_dev(config, reload=False, ready=_tell, sandbox=sandbox)


class ProxiedSandbox:
    """Starts guests that take the proxy for their host; a `Sandbox`."""

    def __init__(self, records: Path, temporal_parent: int) -> None:
        self._records = records
        self._temporal_parent = temporal_parent
        self._serving: set[asyncio.Task[None]] = set()

    def __call__(self, setup: GuestSetup, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        proxy = GuestProxy(setup.address, self._records, temporal_parent=self._temporal_parent)
        # In the guest's own folder, whose owner removes it; as long a name as the host's, which fits.
        address = setup.address.removesuffix("host.sock") + "test.sock"
        server = grpc.aio.server(options=OPTIONS)
        add_GuestHostServicer_to_server(proxy, server)
        server.add_insecure_port(address)
        serving = asyncio.create_task(_serve(server, proxy))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        proxied = GuestSetup()
        proxied.CopyFrom(setup)
        proxied.address = address
        return start_process(proxied, environment)


async def _serve(server: grpc.aio.Server, proxy: GuestProxy) -> None:
    """Until the guest is gone."""
    await server.start()
    await proxy.ended.wait()
    await server.stop(None)


def _tell(url: str) -> None:
    print(f"{READY}{url}", flush=True)  # noqa: T201 (its starter reads it)


if __name__ == "__main__":
    main()
