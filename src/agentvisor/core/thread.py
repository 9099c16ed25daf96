"""A thread: its runs, the attempt that may write, its store; and the moves between its states.

The workflow wires messages to these moves; nothing here knows of Temporal. Times are milliseconds since the epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from agentvisor.core import agent_turns, answering, asking, double_texting, turns, updates
from agentvisor.core.applying import apply, forget_runs
from agentvisor.core.attempts import Active, Close, End, Next, Source, Step
from agentvisor.core.errors import Conflict, NotFound, ThreadFailed
from agentvisor.core.ids import ROOT, AttemptId, RunId, ThreadId
from agentvisor.core.interrupts import Seen
from agentvisor.core.lifetimes import Lifetime
from agentvisor.core.notices import MOST_NOTICES, Notice
from agentvisor.core.owners import EVERYONE, Owner
from agentvisor.core.records import Checkpoint, Operation
from agentvisor.core.restarts import restart_delay_ms, time_left_ms
from agentvisor.core.rollback import NOT_NOTED, Before
from agentvisor.core.room import check_metadata, check_room, room_in
from agentvisor.core.runs import (
    CONSEQUENCES,
    Attempt,
    CancelAction,
    Ending,
    Follow,
    Run,
    RunKind,
    RunSpec,
    RunStatus,
)
from agentvisor.core.store import Store
from agentvisor.core.thread_state import ChangeKind, StateChange
from agentvisor.core.thread_status import ThreadStatus, root_asks, status_of, unfinished
from agentvisor.core.weighing import run_bytes, runs_bytes, unsheddable_bytes

STATE_VERSION = 1
_SESSION_ENDS = (Ending.HOST_STOPPED, Ending.NOT_STARTED)


@dataclass(frozen=True, slots=True)
class Settings:
    """Upkeep: past how many events or bytes an execution continues as new, and how large the state may be then."""

    compact_events: int = 8_000
    compact_bytes: int = 16 * 1024 * 1024
    state_bytes: int = 1_900_000
    checkpoint_history: int = 100
    """Checkpoints kept in each namespace; 0 or less keeps all."""
    run_history: int = 100
    """Finished runs kept; 0 or less keeps all."""
    compact_signals: int = 0
    compact_updates: int = 0
    """Past how many of each an execution continues as new; 0: compaction.SIGNALS and UPDATES."""


@dataclass(slots=True)
class Thread:
    """All that is known of a thread."""

    thread_id: ThreadId
    created_at_ms: int
    updated_at_ms: int
    pending_writes_enabled: bool | None
    """Pinned at creation; None (a thread older than the field) counts as False (S6)."""
    metadata: bytes
    store: Store = field(default_factory=Store)
    runs: dict[RunId, Run] = field(default_factory=dict[RunId, Run])
    active: Active | None = None
    state_updated_at_ms: int = 0
    compactions: int = 0
    failure: str = ""
    settings: Settings = Settings()
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    """How much compactions have left out so far, by shedding step."""
    incarnation: str = ""
    """Tells this thread from earlier and later ones of the same id: where its values in external storage are."""
    owner: Owner = EVERYONE
    """Since its creation; threads of before there were owners have none."""
    before: Before | None = None
    """What it takes to undo the run that has begun last, while it has not ended."""
    notices: dict[RunId, Notice] = field(default_factory=dict[RunId, Notice])
    """Ends of runs that webhooks are still to hear of."""
    lifetime: Lifetime | None = None
    """None: it lives until it is deleted."""
    used_at_ms: int = 0
    """When somebody last used it: what its own upkeep does is no use."""
    swept_at_ms: int = 0
    """When its time to live was last over and it stayed."""
    sweep_run_id: str = ""
    """The session that its upkeep has opened."""
    sweeping: bool = False
    """Its time is over, and what follows of that is being done. Not stored: another execution begins that anew."""
    expiring: bool = False
    """The same, and it will be gone then."""
    revision: int = 0
    """Counts changes, so that the pages of one read can be told to agree."""
    ends: list[End] = field(default_factory=list[End], compare=False, repr=False)
    """Attempts and runs that have ended since whoever tells of them looked last. Not stored."""

    def set_settings(self, settings: Settings) -> None:
        """Take the upkeep of the host that sends a run; not under a live attempt, whose host prunes as it began."""
        if self.active is None:
            self.settings = settings
            self.store.keep = settings.checkpoint_history

    def check_metadata(self, metadata: bytes) -> None:
        """Raise `StateTooLarge` where there is no room for this in the place of the thread's metadata."""
        held = self.unsheddable_bytes()
        check_metadata(self.thread_id, len(self.metadata), len(metadata), held, self.settings.state_bytes)

    # --- runs ------------------------------------------------------------------------------------------------------

    def check_run(self, spec: RunSpec, settings: Settings | None = None, seen: Seen | None = None) -> None:
        """Raise where the run, which brings these settings, cannot be accepted.

        `ThreadFailed`, `Conflict`, `StateTooLarge`. `seen`: what a host saw of a graph's interrupts.
        """
        if spec.run_id not in self.runs:
            answering.check_answers(self.store, self.runs, spec, seen)
            answering.check_input(self.store, self.runs, spec)
        limit = self.settings.state_bytes
        if settings is not None and self.active is None:  # as set_settings will
            limit = max(limit, settings.state_bytes)
        self._check_run(spec, run_bytes(spec), room_in(limit).runs)

    def _check_run(self, spec: RunSpec, more: int, most: int) -> None:
        if self.failure:
            raise ThreadFailed(
                f"thread {self.thread_id} has failed and takes no runs: {self.failure}", thread_id=self.thread_id
            )
        if spec.run_id in self.runs:
            return
        if spec.kind is not RunKind.SESSION:  # which is small, and the way to make a full thread smaller
            check_room(self.thread_id, self.unsheddable_bytes(), more, most)
        double_texting.check(
            self.thread_id,
            spec,
            unfinished(self.runs.values()),
            lambda run: self._check_rollback(run, "multitask_strategy 'interrupt'"),
        )

    def _check_rollback(self, run: Run, way_out: str) -> None:
        if run.rolled_back or not run.attempts:
            return
        why = self._why_not_undone(run)
        if why:
            raise Conflict(
                f"run {run.run_id} of thread {self.thread_id} cannot be rolled back: {why}; use {way_out}",
                run_id=run.run_id,
            )

    def _why_not_undone(self, run: Run) -> str:
        if self.before is None or self.before.run_id != run.run_id:
            return NOT_NOTED
        return self.before.why_not(self.store)

    def accept_run(self, spec: RunSpec, now_ms: int) -> Run:
        """Record the run; accepting the same run id again changes nothing."""
        # A replay comes by here, but not by check_run: what that did not refuse is not refused here by a newer rule.
        self._check_run(spec, len(spec.body), self.settings.state_bytes)
        run = self.runs.get(spec.run_id)
        if run is None:
            self._make_way(spec, now_ms)
            run = Run(spec, RunStatus.PENDING, now_ms, now_ms)
            self.runs[spec.run_id] = run
            if self.sweeping and run.is_session:
                self.sweep_run_id = run.run_id
            else:
                self.used_at_ms = now_ms
            self.touch(now_ms)
        return run

    def _make_way(self, spec: RunSpec, now_ms: int) -> None:
        """End those before a run that was accepted, where it says so: with its acceptance, or not at all."""
        action = double_texting.ENDS_OTHERS.get(spec.multitask)
        if action is not None:
            for run in unfinished(self.runs.values()):
                if not run.rolled_back:
                    self.request_cancel(run.run_id, now_ms, action)

    def next_run(self, now_ms: int) -> Run | None:
        """The run whose turn it is; None: none is due."""
        return turns.next_run(self.runs.values(), now_ms)

    def session_must_yield(self) -> bool:
        """A run waits behind a session of a client outside: the session ends now."""
        if self.active is None or not self.runs[self.active.run_id].is_session:
            return False
        waits = any(not run.is_session and not run.status.terminal for run in self.runs.values())
        return waits or any(run.rolled_back for run in self.runs.values())

    def request_cancel(self, run_id: RunId, now_ms: int, action: CancelAction = CancelAction.INTERRUPT) -> Run:
        """Accept a caller's cancel: kept whatever ends the attempt. `NotFound` for an unknown or finished run."""
        run = self.check_cancel(run_id, action)
        run.cancel_requested = True
        run.rolled_back = run.rolled_back or action is not CancelAction.INTERRUPT
        if run.status.terminal:
            self._forget_rolled_back()
        elif self.active is None or self.active.run_id != run_id:
            self._finish(run, RunStatus.INTERRUPTED, now_ms)
        self.touch(now_ms)
        return run

    def check_cancel(self, run_id: RunId, action: CancelAction = CancelAction.INTERRUPT) -> Run:
        """The run, where it can still be cancelled; `Conflict` where it cannot be rolled back."""
        run = self.runs.get(run_id)
        if run is not None and not run.is_agent and action is not CancelAction.INTERRUPT:
            run = None  # clients' own writes are no run that a caller undoes
        if run is None or run.rolled_back or (run.status.terminal and action is not CancelAction.DELETE):
            state = "unknown" if run is None or run.rolled_back else f"already {run.status.name.lower()}"
            done = "deleted" if action is CancelAction.DELETE else "cancelled"
            raise NotFound(f"run {run_id} of thread {self.thread_id} cannot be {done}: it is {state}", run_id=run_id)
        if action is not CancelAction.INTERRUPT and not run.status.terminal:
            self._check_rollback(run, "action 'interrupt'")
        return run

    def refuse_late(self, run: Run, now_ms: int) -> bool:
        """End a run whose turn it is and that would harm what waits now; whether it was so."""
        if run.attempts or not run.is_agent or run.status.terminal:
            return False
        try:
            answering.check_late(self.store, run.spec)
        except Conflict as error:
            run.error_type, run.error_message = type(error).__name__, error.message
            self._finish(run, RunStatus.ERROR, now_ms)
            return True
        return False

    def begin_attempt(self, run: Run, now_ms: int, *, apart: bool = True) -> Active:
        """The run's next attempt, or the attach of the one whose guest lives on.

        `apart`: what another agent asks is kept for it; False in threads that an earlier version has driven so far.
        """
        if self.active is not None and self.active.run_id == run.run_id and self.active.attaching:
            return self.active
        if not run.attempts and run.is_agent:
            self.before = Before.of(run.run_id, self.store)
            agent_turns.take_turn(self.runs, self.store, run, apart=apart)
            if not run.spec.resumes or run.spec.abandons:
                # It begins anew: an answer to an earlier input must never count for this one.
                self.store.questions.clear()
            self.store.interrupts.begin(run.spec.answers, abandons=run.spec.abandons)
            if run.spec.abandons:
                asking.give_up_others(self.store)
        run.attempts.append(Attempt(len(run.attempts) + 1, scheduled_at_ms=now_ms))
        run.status = RunStatus.RUNNING
        run.updated_at_ms = now_ms
        self.active = Active(run.run_id, len(run.attempts), deadline_ms=now_ms + time_left_ms(run))
        self.touch(now_ms)
        return self.active

    def close_attempt(self, close: Close, now_ms: int) -> Next:
        """Record how the active attempt ended and decide what follows. Its log was applied before."""
        active = self.active
        if active is None:
            raise RuntimeError("an attempt ended that was not active")
        run = self.runs[active.run_id]
        consequence = CONSEQUENCES[close.ending]
        if close.ending is Ending.HANDOVER and not run.cancel_requested:
            active.host_queue, active.attach_offers = close.host_queue, 0
            return Next(Step.ATTACH)
        if active.attaching and not run.cancel_requested and self._offers_again(active, close):
            return Next(Step.ATTACH)
        self._record_end(run, close, now_ms)
        self._no_attempt()
        # A session lives where its client's calls arrive: it ends with its host, and the client opens another. One that
        # was cancelled before it began (a run came) ends too: it would be cancelled again in the same task, for ever.
        if consequence.follow is Follow.END or (close.ending in _SESSION_ENDS and run.is_session):
            self._end(run, consequence.status, close, now_ms)
            return Next(Step.FINISHED)
        if run.cancel_requested:  # CANCELKEEP, CANCARRY
            self._finish(run, RunStatus.INTERRUPTED, now_ms)
            return Next(Step.FINISHED)
        if consequence.follow is Follow.RESTART:
            delay = restart_delay_ms(run, now_ms)
            if delay is None or run.is_session:
                self._end(run, consequence.status, close, now_ms)
                return Next(Step.FINISHED)
            return Next(Step.AGAIN, delay)
        return Next(Step.AGAIN)

    def _offers_again(self, active: Active, close: Close) -> bool:
        """REATTACH, NOTSTARTED: a token that nobody took is offered to the same host again."""
        if close.ending is Ending.NOT_STARTED:
            return not self.session_must_yield()
        return active.offer_again(close)

    def _record_end(self, run: Run, close: Close, now_ms: int) -> None:
        attempt = run.attempts[-1]
        attempt.ending = close.ending
        close.source.attribute(attempt)
        # After an outage, Temporal has been seen to date an attempt's end before its start.
        attempt.ended_at_ms = max(now_ms, attempt.started_at_ms)
        attempt.reason = close.error_message or CONSEQUENCES[close.ending].says
        self.ends.append(End.of(run, attempt, now_ms))
        self.store.drop_unreferenced_blobs()
        self.touch(now_ms)

    def _end(self, run: Run, status: RunStatus, close: Close, now_ms: int) -> None:
        run.output = close.output
        run.paused = close.ending is Ending.PAUSED
        if close.ending is Ending.COMPLETED and run.is_agent:
            self.store.questions.clear()
            self.store.interrupts.clear()
        elif run.paused:
            asking.paused(self.store)
        if status in (RunStatus.ERROR, RunStatus.TIMEOUT):
            run.error_type, run.error_message = close.error_of(run, restarts=not self.failure)
        self._finish(run, status, now_ms)

    def fail(self, error_type: str, message: str, now_ms: int) -> None:
        """The thread's loud end: it can be read and deleted; the runs that wait or run end with this error."""
        self.failure = message
        close = Close(Ending.REPORT_LOST, error_type, message)
        if self.active is not None:
            self._record_end(self.runs[self.active.run_id], close, now_ms)
            self._no_attempt()
        for run in [run for run in self.runs.values() if not run.status.terminal]:
            self._end(run, RunStatus.ERROR, close, now_ms)
        self.touch(now_ms)

    def end_all(self, message: str, now_ms: int) -> None:
        """End what waits or runs as a cancel would, and tell nobody: the thread is in another place now."""
        self.active, close = None, Close(Ending.CANCELLED, error_message=message)
        for run in [run for run in self.runs.values() if not run.status.terminal]:
            if run.attempts and run.attempts[-1].ending is None:
                self._record_end(run, close, now_ms)
            self._finish(run, RunStatus.INTERRUPTED, now_ms)
        self.notices.clear()

    def give_up_guest(self, now_ms: int) -> None:
        """Begin the active attempt anew in the next execution: its guest would go on from what must be left out."""
        if self.active is None:
            return
        run = self.runs[self.active.run_id]
        close = Close(Ending.HANDOVER, error_message="the thread's state had to be made smaller under the run")
        self._record_end(run, close, now_ms)
        self._no_attempt()
        if run.cancel_requested:  # CANCARRY
            self._finish(run, RunStatus.INTERRUPTED, now_ms)
        elif run.is_session:
            self._finish(run, RunStatus.SUCCESS, now_ms)  # a client outside opens another session at once

    def ended_runs(self) -> list[Run]:
        """In order of acceptance."""
        return [run for run in self.runs.values() if run.status.terminal]

    def prune_runs(self) -> None:
        """Keep the newest finished runs, as many as the settings say."""
        keep = self.settings.run_history
        ended = [run for run in self.ended_runs() if run.is_agent]
        for run in ended[:-keep] if keep > 0 else ():
            del self.runs[run.run_id]

    def _finish(self, run: Run, status: RunStatus, now_ms: int) -> None:
        run.status = status
        run.updated_at_ms = now_ms
        if run.is_agent and run.attempts:
            run.head = self.store.heads.get(ROOT, "")
        if run.run_id != self.sweep_run_id:
            self.used_at_ms = now_ms
        if run.is_session:
            del self.runs[run.run_id]
        elif run.is_update:
            updates.finished(self.runs, self.store, run, asks=root_asks(self.store))
        elif run.attempts:
            self.store.interrupts.failed(now_ms)  # unless it has come to its end, or to a question
        if run.rolled_back:
            self._undo(run)
        self.ends.append(End.of(run, None, now_ms))
        if run.attempts and self.before is not None and self.before.run_id == run.run_id:
            self.before.forget(self.store)
            self.before = None
        self._tell(run, now_ms)
        self.touch(now_ms)

    def _undo(self, run: Run) -> None:
        """Leave nothing of a run that has ended; where that cannot be done any more, leave all of it, and say so."""
        why = self._why_not_undone(run) if run.attempts else ""
        if why:
            run.rolled_back = False
            run.error_type, run.error_message = "Conflict", f"the run was to be rolled back, and could not be: {why}"
            return
        if run.attempts and self.before is not None:
            self.before.restore(self.store)
        del self.runs[run.run_id]

    def _no_attempt(self) -> None:
        """The attempt that might write is over: what had to wait for that can go."""
        self.active = None
        self._forget_rolled_back()

    def _forget_rolled_back(self) -> None:
        """Leave nothing of runs that had ended before they were deleted; an attempt builds on what it has read."""
        gone = [run.run_id for run in self.runs.values() if run.rolled_back and run.status.terminal]
        if gone and self.active is None:
            if self.before is not None:
                self.before.without(self.store, set(gone))
            forget_runs(self.store, frozenset(gone))
            self.store.drop_unreferenced_blobs()
            for run_id in gone:
                del self.runs[run_id]

    def _tell(self, run: Run, now_ms: int) -> None:
        """Note that a webhook is to hear of a run's end; of very many, the oldest are given up."""
        if not run.spec.webhook:
            return
        self.notices[run.run_id] = Notice.of(run, self.store, now_ms)
        for old in [*self.notices][:-MOST_NOTICES]:
            self.heard(old, now_ms)

    def heard(self, run_id: RunId, now_ms: int) -> None:
        """A webhook has heard of a run's end, or will never."""
        self.notices.pop(run_id, None)
        self.touch(now_ms)

    # --- the journal -----------------------------------------------------------------------------------------------

    def is_current(self, attempt: AttemptId) -> bool:
        return self.active is not None and self.active.id == attempt

    def apply(self, operations: list[Operation], source: Source, now_ms: int) -> None:
        """Apply the active attempt's fresh operations, in order."""
        active = self.active
        if active is None:
            raise RuntimeError("operations without an active attempt")
        run = self.runs[active.run_id]
        attempt = run.attempts[-1]
        before = self.before if self.before is not None and self.before.run_id == active.run_id else None
        for given in operations:
            operation = self._signed(given, run) if isinstance(given, Checkpoint) else given
            attempt.progressed |= self._is_progress(operation)
            if before is not None:
                before.note(self.store, operation)
            apply(self.store, operation)
        active.applied_seq += len(operations)
        source.attribute(attempt)
        if operations:
            self.state_updated_at_ms = now_ms
            self.touch(now_ms)

    def _signed(self, checkpoint: Checkpoint, run: Run) -> Checkpoint:
        """With the run that has put it: what is deleted with a run does not hang on what its agent writes."""
        if not run.is_agent:
            return replace(checkpoint, made_by="")
        was = self.store.checkpoints.get(checkpoint.namespace, {}).get(checkpoint.checkpoint_id)
        maker = run.run_id if was is None else was.maker
        return replace(checkpoint, made_by="" if maker == checkpoint.run_id else maker)

    def _is_progress(self, operation: Operation) -> bool:
        """Whether a restart goes on from further than before."""
        match operation:
            case Checkpoint():
                return not self.store.is_here(operation.key)
            case StateChange():
                return operation.kind is not ChangeKind.DELETE
            case _:
                return False

    # --- what others see -------------------------------------------------------------------------------------------

    @property
    def last_agent_run(self) -> Run | None:
        return next((run for run in reversed(self.runs.values()) if run.is_agent and not run.rolled_back), None)

    @property
    def last_run(self) -> Run | None:
        """What has made the thread's state what it is: its agent's last run, or an update of it since."""
        return updates.last_run(self.runs)

    @property
    def status(self) -> ThreadStatus:
        if self.failure:
            return ThreadStatus.ERROR
        return status_of(self.runs, self.store)

    def unsheddable_bytes(self, coming: Checkpoint | None = None) -> int:
        """Bytes that every compaction must carry: heads (with the one that is coming), and runs that wait or run."""
        notices = sum(one.stored_bytes for one in self.notices.values())
        carried = (*self.ended_runs()[-1:], *(run for run in self.runs.values() if not run.status.terminal))
        return unsheddable_bytes(self.store, coming) + runs_bytes(carried) + notices + len(self.metadata) + 1024

    def touch(self, now_ms: int) -> None:
        self.updated_at_ms = now_ms
        self.revision += 1
