"""One attempt of a run on this host: reads the thread, runs the agent, serves its store calls, reports how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from time import monotonic, time
from typing import TypeVar

import structlog
from structlog.contextvars import bind_contextvars

from agentvisor.core.errors import (
    AgentVisorError,
    Fenced,
    Internal,
    InvalidInput,
    NotFound,
    Unavailable,
)
from agentvisor.core.ids import AttemptId, RunId, ThreadId
from agentvisor.core.interrupts import Interrupts
from agentvisor.core.owners import EVERYONE, Owner
from agentvisor.core.thread import Thread
from agentvisor.host.attempt_reads import AttemptReads
from agentvisor.host.attempt_report import name_of
from agentvisor.host.attempt_services import AttemptServices
from agentvisor.host.attempt_stops import AttemptStops
from agentvisor.host.attempt_store import AttemptStore
from agentvisor.host.attempt_watch import AgentWatch
from agentvisor.host.counts import learn_framework
from agentvisor.host.external.attempt_objects import AttemptObjects
from agentvisor.host.held_log import HeldLog
from agentvisor.host.journal import Journal
from agentvisor.host.journal_calls import JournalCalls
from agentvisor.host.metrics import (
    AGENT_START_SECONDS,
    ENDED_ATTEMPTS,
    SESSIONS,
    SESSIONS_OPENED,
    STATE_BYTES,
    STATE_SHARE,
)
from agentvisor.host.streams import TapeId
from agentvisor.host.tracing.place import Place, asked_at, stay
from agentvisor.host.tracing.spans import AGENT, ATTEMPT, NO_TRACING, RUN, THREAD, Kind, Span
from agentvisor.protocol.errors import to_error
from agentvisor.protocol.v1 import guest_pb2, journal_pb2, run_pb2, store_pb2

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.run")
Begun = TypeVar("Begun")

_COMMITS = "agentvisor.journal.commits"
_FOLDS = "agentvisor.journal.folds"
_OPERATIONS = "agentvisor.journal.operations"


class LiveAttempt:
    """Owns the attempt's journal from its token to its report."""

    def __init__(
        self,
        task: run_pb2.RunTask,
        journal: Journal,
        calls: JournalCalls,
        services: AttemptServices,
        *,
        ends_at: float,
    ) -> None:
        """Args:
        ends_at: when the run's time budget is used up, by the monotonic clock of this host.
        """
        self.thread_id = ThreadId(task.thread_id)
        self.id = AttemptId(RunId(task.run_id), task.attempt)
        self._tape = TapeId(self.thread_id, self.id.run_id)
        self.journal = journal
        self.store: asyncio.Future[AttemptStore] = asyncio.get_running_loop().create_future()
        self.stopping = asyncio.Event()
        """The host stops: give the run back."""
        self.owner: Owner = EVERYONE
        """Whose the thread is, once the store is there."""
        self.session_calls = 0
        """Calls of a client outside so far: none between two looks means that it is idle."""
        self._begins_at = monotonic() + task.delay_ms / 1000
        self._ends_at = ends_at
        self._services = services
        self._reads = AttemptReads(services.reader, self.thread_id, journal)
        self._stops = AttemptStops(
            journal, calls, self.stopping, own_queue=services.own_queue, before_hand_over=self._prepare_compaction
        )
        self._objects: AttemptObjects | None = None
        self._held: HeldLog | None = None
        self._place: Place | None = None
        """Of the attempt's span, which the thread's workflow tells of when the attempt has ended."""
        self._log = log.bind(thread=self.thread_id, run=self.id.run_id, attempt=self.id.attempt)

    async def run(self) -> None:
        """The attempt, from its token to its report."""
        bind_contextvars(thread=self.thread_id, run=self.id.run_id, attempt=self.id.attempt)
        committing = asyncio.create_task(self.journal.run(), name=f"journal {self.id}")
        close: journal_pb2.AttemptClose | None = None
        try:
            close = await self._until_close()
            if close is not None and close.traceback:
                self._log.error("agent_raised", error=close.error_type, traceback=close.traceback)
            if close is not None and not self.journal.is_fenced:
                await self._prepare_compaction()
            if close is not None and self._held is not None and close.ending == run_pb2.ENDING_COMPLETED:
                close.together.extend(self._held.together)
            if close is not None and await self.journal.close(close):
                ending = name_of(close.ending)
                self._log.info("attempt_ended", ending=ending)
                ENDED_ATTEMPTS.labels(ending).inc()
                if close.ending != run_pb2.ENDING_HOST_STOPPED:
                    await self._end_stream()
            else:
                self._log.warning("attempt_fenced")
                ENDED_ATTEMPTS.labels("fenced").inc()
            if self.store.done():
                share = self.store.result().share
                STATE_SHARE.observe(share)
                STATE_BYTES.observe(share * self._services.limits.max_state)
        finally:
            self.journal.fence()
            committing.cancel()
            (defect,) = await asyncio.gather(committing, return_exceptions=True)
            if isinstance(defect, Exception):
                self._log.error("journal_failed", exc_info=defect)
            self._services.attempt_ended(self.id.run_id)
            given_back = close is not None and close.ending == run_pb2.ENDING_HOST_STOPPED
            self._services.streams.attempt_over(self._tape, self.id.attempt, given_back=given_back)
            if self._objects is not None:
                self._objects.storage.begin(f"values of {self.thread_id} that nothing needs", self._objects.after_end())
            if not self.store.done():
                self.store.set_exception(Unavailable(f"attempt {self.id.attempt} of run {self.id.run_id} has ended"))
                self.store.exception()  # it may be that nobody waits

    async def _end_stream(self) -> None:
        """End the run's events, unless the run goes on in another attempt."""
        try:
            is_over = await self._reads.is_over()
        except AgentVisorError:
            return  # whoever follows the run finds out by himself
        if is_over:
            self._services.streams.close(self._tape)

    async def _prepare_compaction(self) -> None:
        if self.store.done():
            await self.store.result().prepare_compaction()

    async def _until_close(self) -> journal_pb2.AttemptClose | None:
        try:
            thread = await self._unless_stopping(self._open)
            if thread is None:
                return journal_pb2.AttemptClose(ending=run_pb2.ENDING_HOST_STOPPED)
            run = thread.runs[self.id.run_id]
            spec = run_pb2.RunSpec.FromString(run.spec.body)
            self._find_place(spec)
            if run.is_session:
                return await self._hold_session()
            asked = thread.store.interrupts
            close = await self._back_off()
            if close is not None:
                return close
            async with self._services.events.beginning(self.thread_id, run):
                return await self._run_agent(spec, asked)
        except Fenced:
            return None
        except NotFound:
            self.journal.fence()  # the thread was deleted
            return None
        except AgentVisorError as error:
            self._log.warning("attempt_could_not_start", error=error.message)
            return journal_pb2.AttemptClose(
                ending=run_pb2.ENDING_COULD_NOT_START, error_type=type(error).__name__, error_message=error.message
            )
        except Exception:  # noqa: BLE001 - a defect ends the attempt with a report, not with silence
            self._log.exception("attempt_failed")
            return journal_pb2.AttemptClose(
                ending=run_pb2.ENDING_COULD_NOT_START,
                error_type="Internal",
                error_message="the host failed; its log has the traceback",
            )

    def _find_place(self, spec: run_pb2.RunSpec) -> None:
        asked = asked_at(spec) if self._services.tracing.is_on else None
        if asked is not None:
            self._place = asked.of_attempt(*self.id)
            stay(self._place)
            bind_contextvars(trace_id=asked.trace_id)
            self._log = self._log.bind(trace_id=asked.trace_id)
            self._reads.bind(asked.trace_id)

    async def _unless_stopping(self, begin: Callable[[], Coroutine[None, None, Begun]]) -> Begun | None:
        """What begins the attempt; None where the host stops before that is done, so that no agent is at work."""
        if self.stopping.is_set():
            return None
        work, stopping = asyncio.create_task(begin()), asyncio.create_task(self.stopping.wait())
        try:
            await asyncio.wait([work, stopping], return_when=asyncio.FIRST_COMPLETED)
            return work.result() if work.done() else None
        finally:
            stopping.cancel()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _open(self) -> Thread:
        thread = await self._reads.thread()
        self._objects = self._objects_of(thread)
        if thread.runs[self.id.run_id].is_update:
            self._held = HeldLog(self.journal)
        log = self._held or self.journal
        opened = AttemptStore(thread, log, self._reads.blobs, self._services.limits, self._objects)
        self.owner = thread.owner
        self.store.set_result(opened)
        return thread

    def _objects_of(self, thread: Thread) -> AttemptObjects | None:
        external = self._services.external
        if external is None:
            return None
        objects = AttemptObjects(
            external,
            self.thread_id,
            thread.incarnation,
            self.id,
            outlines=self._reads.outlines,
            has_ended=lambda: self.journal.is_closing,
        )
        external.begin(f"leftovers of {self.thread_id}", objects.sweep())
        return objects

    # --- an agent --------------------------------------------------------------------------------------------------

    async def _back_off(self) -> journal_pb2.AttemptClose | None:
        """Wait as long as the restart policy says; how the attempt ended, where that came first. `Fenced`."""
        left = self._begins_at - monotonic()
        if left <= 0:
            return None
        with self._stops.watched() as stop:
            await stop.first(timeout=left)
            if self.journal.is_fenced:
                raise Fenced(f"attempt {self.id.attempt} of run {self.id.run_id} has ended", run_id=self.id.run_id)
            stop.check()
            if stop.cancelled:
                return journal_pb2.AttemptClose(ending=run_pb2.ENDING_CANCELLED)
            return journal_pb2.AttemptClose(ending=run_pb2.ENDING_HOST_STOPPED) if stop.host_stops else None

    async def _run_agent(self, spec: run_pb2.RunSpec, asked: Interrupts) -> journal_pb2.AttemptClose | None:
        services = self._services
        services.attempt_began(self.thread_id)
        asked_at = monotonic()
        run_id, attempt = self.id
        task = guest_pb2.AgentTask(
            thread_id=self.thread_id,
            run_id=run_id,
            attempt=attempt,
            spec=spec,
            deadline_ms=int((time() + max(0.0, self._ends_at - monotonic())) * 1000),
            forgets=asked.forgotten,
            noted=bool(asked.noted or asked.aside or asked.answered),
        )
        environment = self._place.environment if self._place else {}
        with self._span("start agent", spec.agent):
            agent = await self._unless_stopping(
                lambda: services.guests.start_agent(spec.agent, task, self, owner=self.owner, environment=environment)
            )
        if agent is None:
            return journal_pb2.AttemptClose(ending=run_pb2.ENDING_HOST_STOPPED)
        self._log.info("agent_started", agent=spec.agent, pid=agent.pid)
        if agent.pid:  # else it has ended before it was one
            AGENT_START_SECONDS.labels(spec.agent).observe(monotonic() - asked_at)
        ended, boundary = agent.ended, self.store.result().boundary
        waits = spec.durability in ("", "sync")
        watch = AgentWatch(agent, self.journal, boundary, services, ends_at=self._ends_at, waits=waits)
        close: journal_pb2.AttemptClose | None = None
        with self._span("journal", spec.agent) as span:
            try:
                close = await watch.run(self._stops)
            finally:
                if not ended.done():
                    agent.kill()
                    await asyncio.wait([ended], timeout=services.stop_grace)
                journal = self.journal
                span.note({_COMMITS: journal.commits, _FOLDS: journal.folds, _OPERATIONS: journal.last_seq})
        if close is not None:
            learn_framework(spec.agent, close.framework)
        return close

    def _span(self, name: str, agent: str) -> AbstractContextManager[Span]:
        """Something that this host does in the attempt."""
        if self._place is None:
            return NO_TRACING.span(name, Kind.INTERNAL, None, {})
        what = {THREAD: self.thread_id, RUN: self.id.run_id, ATTEMPT: self.id.attempt, AGENT: agent}
        return self._services.tracing.span(name, Kind.INTERNAL, self._place, what)

    # --- what the agent says ----------------------------------------------------------------------------------------

    async def call(self, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        return await answered(self.serve(request))

    async def serve(self, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        """Answer a store call. `Fenced` once the attempt is over: who speaks late is refused, whatever he asks."""
        if self.journal.is_closing:
            raise Fenced(f"attempt {self.id.attempt} of run {self.id.run_id} has ended", run_id=self.id.run_id)
        if request.WhichOneof("kind") == "items":
            return await self._items(request)
        return await self.store.result().call(request)

    async def _items(self, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        """Answer for the store of the thread's owner, which is no part of the thread nor of its journal."""
        answer = self._services.items
        if answer is None:
            raise InvalidInput("this host has no store of items")
        return store_pb2.StoreReply(items=await answer(self.owner, request.items))

    def events(self, events: guest_pb2.StreamEvents) -> None:
        if self.journal.is_fenced:
            return  # the run's readers hear of it from another attempt
        streams = self._services.streams
        for event in events.events:
            streams.publish(self._tape, self.id.attempt, event.mode, list(event.namespace), event.data)

    def log(self, stderr: bool, lines: list[str], dropped: int) -> None:  # noqa: FBT001 - the handler's contract
        for line in lines:
            self._log.info("agent_output", stream="stderr" if stderr else "stdout", line=line)
        if dropped:
            self._log.warning("agent_output_dropped", bytes=dropped)

    # --- a client outside -------------------------------------------------------------------------------------------

    async def _hold_session(self) -> journal_pb2.AttemptClose | None:
        """Keep the attempt for a client outside any guest until it has been quiet for a while."""
        SESSIONS_OPENED.inc()
        SESSIONS.inc()
        try:
            with self._stops.watched() as stop:
                while True:
                    busy = self.session_calls
                    await stop.first(timeout=self._services.session_idle)
                    if self.journal.is_fenced:
                        return None
                    stop.check()
                    quiet = busy == self.session_calls and not self.store.result().is_storing
                    if quiet or stop.cancelled or stop.host_stops:
                        return journal_pb2.AttemptClose(ending=run_pb2.ENDING_COMPLETED)
        finally:
            SESSIONS.dec()


async def answered(call: Awaitable[store_pb2.StoreReply]) -> store_pb2.StoreReply:
    """The reply, or the error as a reply."""
    try:
        return await call
    except AgentVisorError as error:
        return store_pb2.StoreReply(error=to_error(error))
    except Exception:
        log.exception("store_call_failed")
        return store_pb2.StoreReply(error=to_error(Internal("the host failed; its log has the traceback")))
