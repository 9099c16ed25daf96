"""The activity that is an attempt: its token goes to a live attempt, which completes it later, from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from time import monotonic, time

import structlog
from temporalio import activity
from temporalio.client import Client

from agentvisor.core.errors import Unavailable
from agentvisor.core.ids import AttemptId, RunId, ThreadId
from agentvisor.host.attempt_services import AttemptServices
from agentvisor.host.journal import Journal, JournalSettings
from agentvisor.host.journal_calls import JournalCalls
from agentvisor.host.live_attempt import LiveAttempt
from agentvisor.host.metrics import LIVE_ATTEMPTS
from agentvisor.host.workflow import attempt as attempt_activity
from agentvisor.protocol.v1 import journal_pb2, run_pb2

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.run")


class Attempts:
    """The attempts that live on this host."""

    def __init__(
        self,
        client: Client,
        settings: JournalSettings,
        services: AttemptServices,
        *,
        host_id: str,
        changed: Callable[[], None],
    ) -> None:
        self._client = client
        self._settings = settings
        self._services = services
        self._host_id = host_id
        self._changed = changed
        self._live: dict[AttemptId, LiveAttempt] = {}
        self._tasks: dict[AttemptId, asyncio.Task[None]] = {}
        self._came = asyncio.Condition()

    def __len__(self) -> int:
        return len(self._live)

    @activity.defn(name=attempt_activity.RUN_ACTIVITY)
    async def run(self, encoded: bytes) -> bytes:
        """Take the token; Temporal hears of the attempt's end from its journal."""
        task = run_pb2.RunTask.FromString(encoded)
        info = activity.info()
        token = info.task_token
        attempt = AttemptId(RunId(task.run_id), task.attempt)
        live = self._live.get(attempt)
        if live is None and not task.attach and self.stopping:
            # It was on its way here when the host was told to stop: nothing has begun, another host takes it.
            return journal_pb2.AttemptClose(ending=run_pb2.ENDING_HOST_STOPPED).SerializeToString()
        if task.attach:
            if live is None or live.journal.is_fenced:
                # ATTACHONLY: a fresh agent would count its operations from 1 and have them dropped as duplicates.
                return journal_pb2.AttemptClose(
                    ending=run_pb2.ENDING_GUEST_GONE, error_message="the guest did not outlive the compaction"
                ).SerializeToString()
            live.journal.attach(token)
        elif live is None:
            self._start(task, attempt, token, ends_at=monotonic() + _seconds_left(info))
            async with self._came:
                self._came.notify_all()
        else:
            raise RuntimeError(f"attempt {attempt.attempt} of run {attempt.run_id} was scheduled twice")
        activity.raise_complete_async()
        raise AssertionError("not reached")

    def _start(self, task: run_pb2.RunTask, attempt: AttemptId, token: bytes, *, ends_at: float) -> None:
        calls = JournalCalls(
            self._client,
            ThreadId(task.thread_id),
            heartbeat_timeout=timedelta(milliseconds=task.heartbeat_timeout_ms),
        )
        journal = Journal(
            attempt, token, calls, self._settings, host_id=self._host_id, now_ms=lambda: int(time() * 1000)
        )
        for (run_id, _), older in self._live.items():
            if run_id == attempt.run_id:
                older.journal.fence()  # its agent ends now, not when its next heartbeat is refused
        live = LiveAttempt(task, journal, calls, self._services, ends_at=ends_at)
        self._live[attempt] = live
        LIVE_ATTEMPTS.inc()
        running = asyncio.create_task(live.run(), name=f"attempt {attempt}")
        self._tasks[attempt] = running
        running.add_done_callback(lambda done: self._ended(attempt, done))

    def _ended(self, attempt: AttemptId, task: asyncio.Task[None]) -> None:
        self._live.pop(attempt, None)
        LIVE_ATTEMPTS.dec()
        self._tasks.pop(attempt, None)
        self._changed()
        if not task.cancelled() and task.exception() is not None:
            log.error("attempt_crashed", run=attempt.run_id, attempt=attempt.attempt, exc_info=task.exception())

    @property
    def stopping(self) -> bool:
        """The host was told to stop: nothing begins here any more."""
        return self._services.drain.begun.is_set()

    def session(self, run_id: RunId) -> LiveAttempt | None:
        """The session of a client outside, once its activity has come to this host."""
        mine = (live for attempt, live in self._live.items() if attempt.run_id == run_id)
        return next((live for live in mine if not live.journal.is_closing), None)

    async def session_came(self, run_id: RunId) -> LiveAttempt:
        async with self._came:
            await self._came.wait_for(lambda: self.stopping or self.session(run_id) is not None)
        live = self.session(run_id)
        if live is None:
            raise Unavailable("the session ended while it was being opened: try again")
        return live

    async def stop(self, grace: float) -> None:
        """Give every run back within the drain, and `grace` seconds to report it; another host goes on with it."""
        drain = self._services.drain
        drain.begin()
        async with self._came:
            self._came.notify_all()
        for live in self._live.values():
            live.stopping.set()
        given_up = asyncio.create_task(_later(drain.over, grace))
        while self._tasks and not given_up.done():
            # Again and again: the last poll may have brought another.
            await asyncio.wait([given_up, *self._tasks.values()], return_when=asyncio.FIRST_COMPLETED)
        given_up.cancel()
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(given_up, *self._tasks.values(), return_exceptions=True)


async def _later(event: asyncio.Event, seconds: float) -> None:
    await event.wait()
    await asyncio.sleep(seconds)


def _seconds_left(info: activity.Info) -> float:
    """Of the run's time budget, by Temporal's clock alone: this host's may be hours before or behind it."""
    whole = info.start_to_close_timeout or attempt_activity.END_GRACE
    waited = info.started_time - info.current_attempt_scheduled_time
    return (whole - attempt_activity.END_GRACE - waited).total_seconds()
