"""A thread and its runs, as a test speaks of them: over HTTP, as any client does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, Protocol
from uuid import uuid4

from agentvisor.testing.faults import Fault
from agentvisor.testing.record import Operation, Record

Json = Any
"""What HTTP carries; a test knows what its agent puts there."""

WAIT_SECONDS = 60.0
ANSWER_SECONDS = 60.0
GIVE_UP_SECONDS = 5.0
PAUSE = 0.05
UNDER_WAY = ("pending", "running")


class Door(Protocol):
    """How a thread reaches its host, which may be away for a moment."""

    def ask(
        self, method: str, path: str, body: Mapping[str, object] | None = None, *, seconds: float = ANSWER_SECONDS
    ) -> Json:
        """The answer as JSON; `AssertionError` with the host's words where it refuses, or none comes in time."""
        ...

    def log_of(self, thread_id: str) -> str:
        """What the host's log says of a thread."""
        ...


class Thread:
    """One thread, under an id of its own unless it is given one."""

    def __init__(self, door: Door, record: Callable[[str], Record], thread_id: str | None = None) -> None:
        self.id = thread_id or uuid4().hex
        self._door = door
        self._record = record(self.id)
        door.ask("POST", "/threads", {"thread_id": self.id, "if_exists": "do_nothing"})

    # --- runs --------------------------------------------------------------------------------------------------------

    def start(self, agent: str, input: object = None, **more: object) -> Run:
        """Start a run and do not wait for it; `more` is what else the API's body takes: config, command, context..."""
        body = {"assistant_id": agent, "input": input, **more}
        return Run(self._door, self, str(self._door.ask("POST", f"/threads/{self.id}/runs", body)["run_id"]))

    def run(self, agent: str, input: object = None, *, seconds: float = WAIT_SECONDS, **more: object) -> Run:
        """Start a run and wait for its end, however it ends."""
        return self.start(agent, input, **more).wait(seconds)

    def resume(self, agent: str, answer: object, *, seconds: float = WAIT_SECONDS) -> Run:
        """Answer the thread's question, or several by id: {id: answer}; wait for the run's end."""
        return self.run(agent, command={"resume": answer}, seconds=seconds)

    def runs(self) -> list[Run]:
        """All runs, oldest first."""
        told = self._door.ask("GET", f"/threads/{self.id}/runs?limit=1000")
        return [Run(self._door, self, str(one["run_id"])) for one in reversed(told)]

    def give_up(self) -> None:
        """Cancel whatever has not ended, and do not wait for it; what does not answer is left alone."""
        path = f"/threads/{self.id}/runs"
        with suppress(AssertionError):
            for run in self._door.ask("GET", path, seconds=GIVE_UP_SECONDS):
                if run["status"] in UNDER_WAY:
                    self._door.ask("POST", f"{path}/{run['run_id']}/cancel", {}, seconds=GIVE_UP_SECONDS)

    # --- what is there -----------------------------------------------------------------------------------------------

    @property
    def status(self) -> str:
        """idle, busy, interrupted or error."""
        return str(self._door.ask("GET", f"/threads/{self.id}")["status"])

    @property
    def values(self) -> Json:
        """The values of the latest checkpoint."""
        return self.state()["values"]

    @property
    def questions(self) -> list[Json]:
        """The interrupts that wait for an answer: {"id": ..., "value": ...}."""
        return list(self.state()["interrupts"])

    def state(self) -> Json:
        """The latest checkpoint, as `GET /threads/{id}/state` shows it."""
        return self._door.ask("GET", f"/threads/{self.id}/state")

    def history(self) -> list[Json]:
        """All checkpoints that are kept, newest first."""
        return list(self._door.ask("POST", f"/threads/{self.id}/history", {"limit": 1000}))

    # --- faults ------------------------------------------------------------------------------------------------------

    def inject(self, *faults: Fault) -> None:
        """Let these happen to this thread's agents from now on, each once."""
        self._record.arm(*faults)

    @property
    def injected(self) -> list[Fault]:
        """All faults so far, happened or not."""
        return [armed.fault for armed in self._record.armed()]

    @property
    def happened(self) -> list[Fault]:
        """The faults that happened, in order."""
        return self._record.happened()

    @property
    def operations(self) -> list[Operation]:
        """What the agents of all attempts asked of the host (before), and what it acknowledged (after)."""
        return self._record.operations()

    def told(self) -> str:
        """All that helps to understand a failure."""
        log = self._door.log_of(self.id)
        return "\n".join(
            [
                f"thread {self.id}",
                *(f"  injected {fault}" for fault in self.injected),
                *(f"  happened {fault}" for fault in self.happened),
                *(f"  host: {line}" for line in log.splitlines()[-20:]),
            ]
        )


class Run:
    """One run. Each property asks the host anew."""

    def __init__(self, door: Door, thread: Thread, run_id: str) -> None:
        self.id = run_id
        self.thread = thread
        self._door = door
        self._path = f"/threads/{thread.id}/runs/{run_id}"

    def record(self) -> Json:
        """The run, as `GET /threads/{id}/runs/{run_id}` shows it."""
        return self._door.ask("GET", self._path)

    @property
    def status(self) -> str:
        """pending, running, success, error, timeout or interrupted."""
        return str(self.record()["status"])

    @property
    def error(self) -> Json:
        """{"error": class, "message": text}, or None."""
        return self.record()["error"]

    @property
    def endings(self) -> list[str]:
        """How each attempt ended: ["agent_signal", "completed"]."""
        return [str(one["ending"]) for one in self.attempts]

    @property
    def attempts(self) -> list[Json]:
        """Each with its ending, reason, times and host."""
        return list(self.record()["attempts"])

    @property
    def output(self) -> Json:
        """What the run came to: a plain agent's result, a graph's values."""
        return self._door.ask("GET", f"{self._path}/join")

    def wait(self, seconds: float = WAIT_SECONDS) -> Run:
        """Wait for the end; `AssertionError` with all that is known where it does not come in time."""
        end = monotonic() + seconds
        while self.status in UNDER_WAY:
            if monotonic() > end:
                raise AssertionError(f"run {self.id} has not ended in {seconds:g} s; {self.thread.told()}")
            sleep(PAUSE)
        return self

    def cancel(self) -> Run:
        """Cancel it and wait until it has ended."""
        self._door.ask("POST", f"{self._path}/cancel?wait=1", {})
        return self.wait()
