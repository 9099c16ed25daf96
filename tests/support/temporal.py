"""Real Temporal servers for tests: on free ports, in a folder of their own, gone when the test process is gone."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from agentvisor.host import leash
from agentvisor.host.temporal_server import EmbeddedTemporal
from agentvisor.host.temporal_server_ready import wait_until_ready

NAMESPACE = "default"
_READY_SECONDS = 30.0
_START_TRIES = 3


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


class TemporalProcess:
    """The server that EmbeddedTemporal starts, without its watch: killed, it stays dead until it is started again."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port, ui_port = free_ports(2)
        self.address = f"127.0.0.1:{self.port}"
        self._command = [
            *EmbeddedTemporal(data_dir=folder, port=self.port, ui_port=ui_port)._command(),
            # Deletes an execution at once, instead of half a minute after it was closed.
            *("--dynamic-config-value", "history.transferProcessorEnsureCloseBeforeDelete=false"),
            # A test may let a workflow's hours pass in a moment.
            *("--dynamic-config-value", "frontend.WorkflowTimeSkippingEnabled=true"),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def launch(self) -> None:
        """Start the process; from the main thread, whose death ends it (leash.py)."""
        with (self.folder / "temporal.log").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), *self._command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    async def start(self) -> None:
        """Start it and wait until it answers."""
        for _ in range(_START_TRIES):
            self.launch()
            if await self._answers():
                return
            self.stop()
        raise RuntimeError(f"Temporal does not start:\n{(self.folder / 'temporal.log').read_text()[-4000:]}")

    async def _answers(self) -> bool:
        ready = asyncio.create_task(wait_until_ready(self.address, namespace=NAMESPACE))
        try:
            async with asyncio.timeout(_READY_SECONDS):
                while not ready.done():
                    assert self._process is not None
                    if self._process.poll() is not None:  # it picks ports for inner services and may lose one
                        return False
                    await asyncio.wait([ready], timeout=0.05)
            await ready
        except TimeoutError:
            return False
        else:
            return True
        finally:
            ready.cancel()
            await asyncio.gather(ready, return_exceptions=True)

    def kill(self) -> None:
        """SIGKILL: what was not on disk is lost."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def temporal_server(folder: Path) -> Generator[TemporalProcess]:
    """A server that answers, while the context lasts."""
    server = TemporalProcess(folder)
    try:
        asyncio.run(server.start())
        yield server
    finally:
        server.stop()
