"""A real host in a process of its own, for a project under test; killed, it is started again by whoever asks it."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agentvisor.testing.process import Process, start_on_free_ports
from agentvisor.testing.record import Record
from agentvisor.testing.temporal import Temporal
from agentvisor.testing.thread import ANSWER_SECONDS, PAUSE, Thread

if TYPE_CHECKING:
    import httpx
    from langgraph_sdk.client import SyncLangGraphClient

UNAVAILABLE = 503
"""While Temporal is away."""

QUICK: Mapping[str, object] = {
    "temporal.heartbeat_timeout": "2s",
    "temporal.idle_heartbeat": "500ms",
    "temporal.run_restart.initial_backoff": "50ms",
    "guest.stop_grace": "500ms",
}
"""Settings with which recovery takes tenths of seconds: tests are for what happens, not for how long one waits."""


class Host:
    """`agentvisor dev` for a project, on a Temporal that outlives it; `thread()` is where a test begins."""

    def __init__(self, place: Path, temporal: Temporal, folder: Path, settings: Mapping[str, object]) -> None:
        self.folder = folder
        """For logs, and for what the host keeps outside Temporal."""
        self.temporal = temporal
        self.threads: list[Thread] = []
        """Those that the present test has used."""
        self._http_port = 0
        self._records = folder / "records"
        self._records.mkdir(parents=True)
        self._place = place
        self._overrides: dict[str, object] = {
            **QUICK,
            "temporal.task_queue": f"test-{uuid4().hex}",
            **settings,
            "temporal.address": temporal.address,
            "temporal.namespace": "default",
            "http.host": "127.0.0.1",
            "grpc.port": 0,
            "dev.data_dir": str(folder / "data"),
        }
        log, working = folder / "host.log", _folder_of(place)
        self._process = Process("agentvisor.testing.host_main", [], log, folder=working)

    # --- the process -------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where it answers, for `langgraph_sdk` and any other client; the same after a restart."""
        return f"http://127.0.0.1:{self._http_port}"

    @property
    def pid(self) -> int:
        """Of the process that runs now, or ran last."""
        return self._process.pid

    @property
    def log(self) -> Path:
        """Its log: JSON, a line each."""
        return self._process.log

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive

    def start(self) -> None:
        """Start it if it does not run; return when it takes runs. In the main thread: with another it would end."""
        if not self._process.is_alive:
            self._process.end(signal.SIGKILL)
            if self._http_port:
                self._process.start()
            else:
                (self._http_port,) = start_on_free_ports(self._process, 1, self._arguments)

    def _arguments(self, ports: list[int]) -> list[str]:
        overrides = json.dumps({**self._overrides, "http.port": ports[0]})
        return [str(self._place), overrides, str(self._records), str(self.temporal.pid)]

    def kill(self) -> None:
        """SIGKILL. Whoever waits for a run, or asks for anything, starts it again."""
        self._process.end(signal.SIGKILL)

    def freeze(self) -> None:
        """SIGSTOP, until `thaw`."""
        self._process.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self._process.send(signal.SIGCONT)

    def stop(self) -> None:
        """SIGTERM, and wait: it gives its runs back."""
        self._process.end()

    # --- threads -----------------------------------------------------------------------------------------------------

    def thread(self, thread_id: str | None = None) -> Thread:
        """A new thread, or the one of this id."""
        thread = Thread(self, lambda id_: Record(self._records, id_), thread_id)
        self.threads.append(thread)
        return thread

    @cached_property
    def client(self) -> SyncLangGraphClient:
        """`langgraph_sdk`'s client of this host."""
        from langgraph_sdk import get_sync_client

        return get_sync_client(url=self.url)

    def leave(self) -> None:
        """A test is over: what it has frozen goes on, and what it has left running is cancelled."""
        self.temporal.thaw()
        self.thaw()
        threads, self.threads = self.threads, []
        if self.is_alive:
            for thread in threads:
                thread.give_up()

    # --- the door of its threads -------------------------------------------------------------------------------------

    def ask(
        self, method: str, path: str, body: Mapping[str, object] | None = None, *, seconds: float = ANSWER_SECONDS
    ) -> Any:
        """See `thread.Door`. One that is dead is started again, what does not answer is asked again."""
        import httpx

        end = monotonic() + seconds
        may_repeat = not path.endswith("/runs")
        while True:
            if threading.current_thread() is threading.main_thread():
                self.start()
            try:
                answer = self._http.request(method, path, json=body, timeout=seconds)
            except httpx.TransportError as error:
                # A run that may have been started is not started again.
                again = may_repeat or isinstance(error, httpx.ConnectError)
                if not again or monotonic() > end:
                    raise AssertionError(f"{method} {path}: no answer ({error!r})") from error
            else:
                if answer.status_code != UNAVAILABLE or not may_repeat or monotonic() > end:
                    break
            sleep(PAUSE)
        if answer.is_error:
            raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content.strip() else None

    def log_of(self, thread_id: str) -> str:
        """See `thread.Door`."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(line for line in lines if thread_id in line)

    @cached_property
    def _http(self) -> httpx.Client:
        import httpx

        return httpx.Client(base_url=self.url)


def _folder_of(place: Path) -> Path:
    return place if place.is_dir() else place.parent
