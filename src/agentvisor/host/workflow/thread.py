"""The thread's workflow: wires Temporal's messages to the moves of core; one per thread, open as long as it lives.

Handlers never await and never raise on what a guest sent. Everything a guest sent was checked at the host's door.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from google.protobuf.message import DecodeError
from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from agentvisor.core import asking, deadlines, expiry, shed, turns
    from agentvisor.core.agent_turns import changes_hands
    from agentvisor.core.attempts import Active, Next, Step
    from agentvisor.core.compaction import Usage, is_due
    from agentvisor.core.errors import AgentVisorError
    from agentvisor.core.ids import AttemptId, RunId
    from agentvisor.core.journal import Stretch, arrival
    from agentvisor.core.owners import check_owner
    from agentvisor.core.runs import CONSEQUENCES, Follow, Run
    from agentvisor.core.thread import Thread
    from agentvisor.host.workflow.attempt import start_attempt
    from agentvisor.host.workflow.closes import close_of_error, close_of_value
    from agentvisor.host.workflow.expiring import sweep
    from agentvisor.host.workflow.hearing import ENDS, Counted, counted, noted
    from agentvisor.host.workflow.refusals import refusing
    from agentvisor.host.workflow.showing import Showing
    from agentvisor.host.workflow.telling import tell
    from agentvisor.protocol import reads
    from agentvisor.protocol.convert import operations_from
    from agentvisor.protocol.default_answers import run_with_defaults
    from agentvisor.protocol.interrupts import seen_from_message
    from agentvisor.protocol.threads import (
        action_of,
        lifetime_from_message,
        run_to_message,
        settings_from_message,
        source_of,
        spec_from_message,
        thread_from_message,
        thread_to_message,
        without_supersteps,
    )
    from agentvisor.protocol.v1 import journal_pb2, run_pb2, thread_pb2

WORKFLOW = "agentvisor.thread"

_SHORTEST_TIMER_MS = 1_000
"""Temporal's servers let a shorter timer take this long all the same: the host waits instead."""
_HOST_WAITS = "a-host-waits-short-backoffs"
"""Patch: threads of earlier versions have a timer for each backoff in their histories."""
_ASKS_APART = "agents-ask-apart"
"""Patch: in threads of earlier versions, a run of one agent ended what another had asked."""


def _now_ms() -> int:
    return int(workflow.time() * 1000)


def _encoded(thread: Thread) -> bytes:
    return thread_to_message(thread).SerializeToString()


def _decoded(state: bytes) -> Thread:
    thread = thread_from_message(thread_pb2.Thread.FromString(state))
    thread.store.keep = thread.settings.checkpoint_history
    return thread


@workflow.defn(name=WORKFLOW)
class ThreadWorkflow:
    @workflow.init
    def __init__(self, state: bytes) -> None:
        self._thread: Thread = _decoded(state)
        self._compacting = self._compaction_asked = False
        self._signals = self._updates = 0
        self._showing = Showing()

    @workflow.run
    async def run(self, state: bytes) -> None:  # noqa: ARG002 - taken by __init__
        self._telling = asyncio.create_task(tell(lambda: self._thread, _now_ms))
        self._sweeping = asyncio.create_task(sweep(lambda: self._thread, _now_ms))
        while True:
            self._show()
            await self._until_something_is_due()
            if self._compaction_due():
                self._continue_as_new()
            run = self._thread.next_run(_now_ms())
            if run is None or run.is_session:
                self._expire()
                run = self._thread.next_run(_now_ms())
            if run is not None:
                await self._drive(run)

    def _until_deadline(self, deadline_ms: int | None) -> timedelta | None:
        return None if deadline_ms is None else timedelta(milliseconds=max(0, deadline_ms - _now_ms()) + 1)

    async def _until_something_is_due(self) -> None:
        """A run, upkeep, or the deadline of what waits for an answer; a thread that has failed waits for nothing."""
        deadline = None if self._thread.failure else deadlines.next_deadline_ms(self._thread)
        due = turns.next_due_ms(self._thread.runs.values())
        await self._until(
            lambda: (
                self._thread.next_run(_now_ms()) is not None
                or self._compaction_due()
                or (deadline is not None and deadlines.next_deadline_ms(self._thread) != deadline)
                or turns.next_due_ms(self._thread.runs.values()) != due
            ),
            self._until_deadline(min((at for at in (deadline, due) if at is not None), default=None)),
        )

    def _expire(self) -> None:
        """Give the default answers of what is overdue; where there is one without, all that waits is closed."""
        thread, now = self._thread, _now_ms()
        overdue = deadlines.overdue(thread, now)
        if overdue is None or thread.failure:
            return
        asked, refused = deadlines.asking_run(thread, overdue.interrupts[0]), ""
        if asked is not None and overdue.has_defaults:
            of_graph = {one.id for one in overdue.interrupts if asking.noted(thread.store, one.id) is not None}
            spec = run_with_defaults(asked, overdue.interrupts, str(workflow.uuid4()), of_graph=of_graph)
            try:
                thread.accept_run(spec_from_message(spec), now)
            except AgentVisorError as error:
                refused = error.message
                noted("warning", "default_answer_refused", thread=thread.thread_id, error=error.code, text=refused)
            else:
                counted(Counted.EXPIRED, "answer", number=len(overdue.interrupts))
                return
        deadlines.expire(thread, overdue, now, refused=refused)
        counted(Counted.EXPIRED, "answer_refused" if refused else "cancel", number=len(overdue.interrupts))

    async def _drive(self, run: Run) -> None:
        """Attempt after attempt, until the run has ended."""
        if self._thread.refuse_late(run, _now_ms()):
            self._tell_ends()
            return
        host_waits_ms = 0
        while not run.status.terminal:
            apart = (
                run.attempts
                or not changes_hands(self._thread.runs, self._thread.store, run)
                or workflow.patched(_ASKS_APART)
            )
            active = self._thread.begin_attempt(run, _now_ms(), apart=bool(apart))
            self._show()
            follows = await self._attempt(run, active, host_waits_ms)
            if follows.step is Step.ATTACH and self._compacting:
                self._continue_as_new()
            host_waits_ms = 0
            if 0 < follows.delay_ms < _SHORTEST_TIMER_MS and workflow.patched(_HOST_WAITS):
                host_waits_ms = follows.delay_ms
            elif follows.delay_ms:
                self._show()
                await self._until(lambda: run.status.terminal, timedelta(milliseconds=follows.delay_ms))
            if run.is_update and run.status.terminal:
                run.spec = without_supersteps(run.spec)
            if self._compaction_due() and self._thread.active is None:
                self._continue_as_new()
            if self._thread.failure:
                return

    async def _attempt(self, run: Run, active: Active, host_waits_ms: int) -> Next:
        """One activity: schedule it, cancel it where something asks for that, and take in how it closed."""
        thread_id, now = self._thread.thread_id, _now_ms()
        handle = start_attempt(thread_id, run, active, now, host_waits_ms=host_waits_ms)
        # Deadlines are decided between runs. A client outside that writes again and again must not put them off.
        deadline = deadlines.next_deadline_ms(self._thread) if run.is_session else None
        await self._until(lambda: handle.done() or self._stop_wanted(run), self._until_deadline(deadline))
        if not handle.done() and not self._stop_wanted(run):
            self._thread.request_cancel(run.run_id, _now_ms())  # its host sees why it has to end
        if not handle.done():
            self._compacting = not run.cancel_requested and self._compaction_due()
            handle.cancel()
        try:
            closed = close_of_value(await handle)
        except ActivityError as error:
            closed = close_of_error(error.cause)
        close = closed.close
        self._take(closed.rest)
        if self._thread.failure:
            self._thread.fail("Internal", self._thread.failure, _now_ms())
            self._tell_ends(closed.framework)
            return Next(Step.FINISHED)
        if closed.together and self._thread.is_current(active.id):
            self._thread.apply(operations_from(closed.together), close.source, _now_ms())
        follows = self._thread.close_attempt(close, _now_ms())
        self._tell_ends(closed.framework)
        if CONSEQUENCES[close.ending].follow is Follow.RESTART and run.is_agent and not run.cancel_requested:
            restarted = follows.step is not Step.FINISHED
            counted(Counted.RESTARTED if restarted else Counted.GIVEN_UP, close.ending.name.lower())
        return follows

    def _stop_wanted(self, run: Run) -> bool:
        thread = self._thread
        return run.cancel_requested or bool(thread.failure) or thread.session_must_yield() or self._compaction_due()

    async def _until(self, condition: Callable[[], bool], timeout: timedelta | None = None) -> None:
        """Wait for a condition, or the timeout; an operator's cancel of the workflow cancels the active run."""
        try:
            await workflow.wait_condition(condition, timeout=timeout)
        except TimeoutError:
            return
        except asyncio.CancelledError:
            run = self._thread.next_run(_now_ms())
            if run is not None:
                self._thread.request_cancel(run.run_id, _now_ms())
                self._tell_ends()

    def _tell_ends(self, framework: str = "") -> None:
        """Trace and count what has ended since it was asked last; the framework is what the attempt told that ended."""
        for end in self._thread.ends:
            ENDS.tell(self._thread.thread_id, end)
            if end.attempt is None and end.run.is_agent:
                counted(Counted.ENDED, end.run.spec.agent, framework, end.outcome, number=end.seconds)
        self._thread.ends.clear()

    # --- the journal -----------------------------------------------------------------------------------------------

    @workflow.signal
    def fold(self, log: bytes) -> None:
        self._signals += 1
        try:
            message = journal_pb2.Log.FromString(log)
        except DecodeError:
            # Somebody's hand: a host that had lost what it sent would meet a gap, and say so. Raising, the thread would
            # answer nobody any more.
            noted("warning", "fold_ignored", thread=self._thread.thread_id)
            return
        self._take(message)
        self._showing.folded(self._thread, _now_ms())

    def _take(self, log: journal_pb2.Log) -> None:
        """Apply what is new in a log. CURRENT: a log of another attempt is ignored."""
        thread = self._thread
        if thread.active is None or not thread.is_current(AttemptId(RunId(log.run_id), log.attempt)):
            return
        came = arrival(thread.active.applied_seq, Stretch(log.first_seq, tuple(log.entries)))
        if came.gap:
            # Cannot happen while the rules hold; nothing is applied past it, and the thread says so.
            thread.failure = f"journal gap in attempt {log.attempt} of run {log.run_id}: {came.first_seq} expected"
            counted(Counted.FAILED, "journal_gap")
            noted("error", "thread_failed", thread=thread.thread_id, error=thread.failure)
            return
        thread.apply(operations_from(came.fresh), source_of(log), _now_ms())

    # --- callers ---------------------------------------------------------------------------------------------------

    @workflow.update
    def start_run(self, request: bytes) -> bytes:
        self._updates += 1
        message = run_pb2.StartRun.FromString(request)
        with refusing():
            if message.HasField("settings"):
                self._thread.set_settings(settings_from_message(message.settings))
            run = self._thread.accept_run(spec_from_message(message.spec), _now_ms())
            if run.is_agent:
                self._thread.metadata = reads.named_for(self._thread.metadata, message.spec)
            self._tell_ends()
        return run_pb2.StartRunReply(run=run_to_message(run, whole=False)).SerializeToString()

    @start_run.validator
    def _check_start_run(self, request: bytes) -> None:
        with refusing():
            message = run_pb2.StartRun.FromString(request)
            self._check_owner(message.owner)
            expiry.check_alive(self._thread)
            settings = settings_from_message(message.settings) if message.HasField("settings") else None
            seen = seen_from_message(message.seen) if message.HasField("seen") else None
            self._thread.check_run(spec_from_message(message.spec), settings, seen)

    @workflow.update
    def cancel_run(self, request: bytes) -> bytes:
        self._updates += 1
        asked = run_pb2.CancelRun.FromString(request)
        with refusing():
            run = self._thread.request_cancel(RunId(asked.run_id), _now_ms(), action_of(asked))
            self._tell_ends()
        return run_to_message(run, whole=False).SerializeToString()

    @cancel_run.validator
    def _check_cancel_run(self, request: bytes) -> None:
        asked = run_pb2.CancelRun.FromString(request)
        with refusing():
            self._check_owner(asked.owner)
            self._thread.check_cancel(RunId(asked.run_id), action_of(asked))

    @workflow.update
    def close_interrupts(self, request: bytes) -> bytes:  # noqa: ARG002 - there is nothing to say but that
        self._updates += 1
        deadlines.close_interrupts(self._thread, _now_ms())
        self._show()
        return b""

    @close_interrupts.validator
    def _check_close_interrupts(self, request: bytes) -> None:
        with refusing():
            self._check_owner(run_pb2.CloseInterrupts.FromString(request).owner)
            deadlines.check_close_interrupts(self._thread)

    @workflow.update
    def update_thread(self, request: bytes) -> bytes:
        self._updates += 1
        message = run_pb2.UpdateThread.FromString(request)
        self._thread.metadata = reads.merged_metadata(self._thread.metadata, message.metadata)
        if message.HasField("lifetime") or message.without_lifetime:
            self._thread.lifetime = None if message.without_lifetime else lifetime_from_message(message.lifetime)
        self._thread.used_at_ms = _now_ms()
        self._thread.touch(_now_ms())
        self._show()
        return b""

    @update_thread.validator
    def _check_update_thread(self, request: bytes) -> None:
        message = run_pb2.UpdateThread.FromString(request)
        with refusing():
            self._check_owner(message.owner)
            expiry.check_alive(self._thread)
            self._thread.check_metadata(reads.merged_metadata(self._thread.metadata, message.metadata))

    def _check_owner(self, caller: str) -> None:
        check_owner(self._thread.thread_id, caller, self._thread.owner)

    # --- readers ---------------------------------------------------------------------------------------------------

    @workflow.update
    def compact(self, request: bytes) -> bytes:  # noqa: ARG002 - there is nothing to say but that
        """Continue as new once no run is alive or waits: what an upgrade asks of every thread."""
        self._updates += 1
        self._compaction_asked = True
        return b""

    @workflow.query
    def read_thread(self, request: bytes) -> bytes:
        return reads.read_thread(self._thread, thread_pb2.ReadThread.FromString(request)).SerializeToString()

    @workflow.query
    def read_blobs(self, request: bytes) -> bytes:
        asked = thread_pb2.ReadBlobs.FromString(request)
        thread = self._thread
        reply = reads.read_outlines(thread, asked) if asked.outlines else reads.read_blobs(thread.store, asked)
        reply.owner = thread.owner
        return reply.SerializeToString()

    @workflow.query
    def read_storage(self, request: bytes) -> bytes:
        reply = reads.read_storage(self._thread, thread_pb2.ReadStorage.FromString(request))
        reply.owner = self._thread.owner
        return reply.SerializeToString()

    @workflow.query
    def read_attempt(self, request: bytes) -> bytes:
        asked = thread_pb2.ReadAttempt.FromString(request)
        run = self._thread.runs.get(RunId(asked.run_id))
        active = self._thread.active
        return thread_pb2.ReadAttemptReply(
            current=self._thread.is_current(AttemptId(RunId(asked.run_id), asked.attempt)),
            cancel_requested=run is None
            or run.cancel_requested
            or bool(self._thread.failure)
            or self._thread.session_must_yield(),
            compacting=self._compacting,
            applied_seq=active.applied_seq if active else 0,
        ).SerializeToString()

    # --- upkeep ----------------------------------------------------------------------------------------------------

    def _compaction_due(self) -> bool:
        thread, info = self._thread, workflow.info()
        if thread.failure or thread.expiring:
            return False  # what is being deleted goes on in no other execution
        is_idle = thread.active is None
        usage = Usage(
            events=info.get_current_history_length(),
            history_bytes=info.get_current_history_size(),
            signals=self._signals,
            updates=self._updates,
            suggested=info.is_continue_as_new_suggested(),
        )
        return (self._compaction_asked and is_idle) or is_due(usage, thread.settings, is_idle=is_idle)

    def _continue_as_new(self) -> None:
        """Go on in a new execution with what fits; a state that cannot fit ends the thread loudly, still readable."""
        thread = self._thread
        thread.compactions += 1
        whole, was_live = _encoded(thread), thread.active is not None
        limit = thread.settings.state_bytes
        shedding = shed.until_it_fits(thread, lambda: _encoded(thread), limit, _now_ms())
        if shedding.state is not None:
            for step, number in shedding.left_out.items():
                counted(Counted.SHED, step.value, number=number)
            counted(Counted.COMPACTED, "live" if thread.active else "given_up" if was_live else "idle")
            counted(Counted.CARRIED, number=len(shedding.state))
            self._tell_ends()
            workflow.continue_as_new(shedding.state)
        counted(Counted.FAILED, "state_too_large")
        # Leaving out did not help: everything is back, to be read and taken elsewhere.
        self._thread = thread = _decoded(whole)
        thread.fail(
            "StateTooLarge",
            f"the thread's state has {len(whole)} bytes, and {shedding.size} when everything is left out that may be; "
            f"the limit is {limit} (storage.max_state): copy what is needed to a new thread, or raise the limit",
            _now_ms(),
        )
        noted("error", "thread_failed", thread=thread.thread_id, error=thread.failure)
        self._tell_ends()

    def _show(self) -> None:
        self._showing.show(self._thread, _now_ms())
