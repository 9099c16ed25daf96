"""The Temporal server of a test session, in a process of its own: killed, it is started again on its database.

`python -m agentvisor.testing.temporal_main FOLDER PORT UI_PORT`, started by the pytest fixtures.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from agentvisor.host.logs import configure_logs
from agentvisor.host.temporal_server import EmbeddedTemporal
from agentvisor.testing.process import READY


def main() -> None:
    """Run until SIGTERM."""
    configure_logs(json=True)
    folder, port, ui_port = sys.argv[1:]
    asyncio.run(_run(Path(folder), int(port), int(ui_port)))


async def _run(folder: Path, port: int, ui_port: int) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with EmbeddedTemporal(data_dir=folder, port=port, ui_port=ui_port) as server:
        print(f"{READY}{server.address}", flush=True)  # noqa: T201 (its starter reads it)
        await stopping.wait()


if __name__ == "__main__":
    main()
