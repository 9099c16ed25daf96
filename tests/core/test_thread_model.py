"""A thread under any sequence of moves, beside a small model that knows only what was promised."""

from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.core.build import checkpoint, spec, thread

from agentvisor.core import shed
from agentvisor.core.attempts import Close, Source, Step
from agentvisor.core.errors import Conflict, NotFound
from agentvisor.core.ids import AttemptId, RunId
from agentvisor.core.journal import Stretch, arrival
from agentvisor.core.runs import CONSEQUENCES, CancelAction, Ending, Follow, Multitask, RestartPolicy, RunKind
from agentvisor.core.thread import Thread
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.protocol.metadata import metadata_to_struct
from agentvisor.protocol.threads import thread_from_message, thread_to_message
from agentvisor.protocol.v1 import thread_pb2

RESTARTS = 2
POLICY = RestartPolicy(max_attempts=RESTARTS)


@dataclass
class Promised:
    """What the model knows of one run."""

    agent: bool
    cancelled: bool = False
    over: bool = False
    gone: bool = False
    """It is to be undone."""
    written: set[int] = field(default_factory=set[int])
    restarts: int = 0
    attempts: int = 0


@dataclass
class Writer:
    """The log of the attempt that may write, as its host holds it."""

    attempt: AttemptId
    entries: list[int] = field(default_factory=list[int])


class ThreadMachine(RuleBasedStateMachine):
    """Moves in the order in which the workflow makes them; any ending, any cancel, any compaction in between."""

    def __init__(self) -> None:
        super().__init__()
        self.thread: Thread = thread()
        self.runs: dict[RunId, Promised] = {}
        self.writer: Writer | None = None
        self.acknowledged: set[int] = set()
        self.count = 0
        self.scheduled = False
        """An activity is scheduled: an attempt, or an attach of one."""

    # --- callers -----------------------------------------------------------------------------------------------------

    @rule(session=st.booleans(), multitask=st.sampled_from(Multitask))
    def start_run(self, *, session: bool, multitask: Multitask) -> None:
        self.count += 1
        kind = RunKind.SESSION if session else RunKind.AGENT
        busy = any(run.agent and not run.over for run in self.runs.values())
        refused = busy and (session or multitask is Multitask.REJECT)
        one = spec(f"r{self.count}", kind=kind, multitask=multitask, restart=POLICY)
        try:
            self.thread.accept_run(one, self.count)
        except Conflict:
            assert refused
        else:
            assert not refused
            if multitask in (Multitask.INTERRUPT, Multitask.ROLLBACK):
                for run_id in [run_id for run_id, run in self.runs.items() if run.agent and not run.over]:
                    self._cancelled(run_id, undone=multitask is Multitask.ROLLBACK)
            self.runs[one.run_id] = Promised(agent=not session)

    @precondition(lambda self: any(not run.over for run in self.runs.values()))
    @rule(data=st.data(), undone=st.booleans())
    def cancel(self, data: st.DataObject, *, undone: bool) -> None:
        run_id = data.draw(st.sampled_from([run_id for run_id, run in self.runs.items() if not run.over]))
        undone &= self.runs[run_id].agent
        try:
            self.thread.request_cancel(run_id, self.count, CancelAction.ROLLBACK if undone else CancelAction.INTERRUPT)
        except NotFound:
            assert self.runs[run_id].gone
        else:
            assert not self.runs[run_id].gone
            self._cancelled(run_id, undone=undone)

    @precondition(lambda self: any(run.over and run.agent and not run.gone for run in self.runs.values()))
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """A run that has ended, with what it has made."""
        ended = [run_id for run_id, run in self.runs.items() if run.over and run.agent and not run.gone]
        run_id = data.draw(st.sampled_from(ended))
        self.thread.request_cancel(run_id, self.count, CancelAction.DELETE)
        self.runs[run_id].gone = True
        self._undone()

    def _cancelled(self, run_id: RunId, *, undone: bool) -> None:
        run = self.runs[run_id]
        run.cancelled, run.gone = True, run.gone or undone
        if self.thread.active is None or self.thread.active.run_id != run_id:
            run.over = True
        self._undone()

    def _undone(self) -> None:
        """Nothing is left of what is to be undone, as soon as nobody builds on it."""
        if self.writer is None or not self.scheduled:
            for run in self.runs.values():
                if run.gone and run.over and self.thread.active is None:
                    self.acknowledged -= run.written

    # --- the workflow ------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.scheduled and self.thread.next_run(self.count) is not None)
    @rule()
    def schedule(self) -> None:
        run = self.thread.next_run(self.count)
        assert run is not None
        promised = self.runs[run.run_id]
        attaching = self.thread.active is not None
        assert attaching or not promised.cancelled, "CANCELKEEP"
        active = self.thread.begin_attempt(run, self.count)
        assert active.run_id == next(run_id for run_id, one in self.runs.items() if not one.over), "in order"
        if attaching:
            assert self.writer is not None
            assert active.id == self.writer.attempt, "ATTACHONLY"
        else:
            promised.attempts += 1
            assert active.attempt == promised.attempts
            self.writer = Writer(active.id)
        self.scheduled = True

    @precondition(lambda self: self.scheduled)
    @rule(ending=st.sampled_from(Ending), heard=st.booleans(), landed=st.booleans())
    def close(self, *, ending: Ending, heard: bool, landed: bool) -> None:
        active = self.thread.active
        assert active is not None
        assert self.writer is not None
        run, attaching = self.runs[active.run_id], active.attaching
        if landed:
            self._fold(len(self.writer.entries))
        follows = self.thread.close_attempt(Close(ending, host_queue="q:h1", heartbeat_seen=heard), self.count)
        self.scheduled = False
        row = CONSEQUENCES[ending]
        if follows.step is Step.ATTACH:
            assert not run.cancelled, "CANCARRY"
            assert ending is Ending.HANDOVER or attaching
            return
        run.restarts += row.follow is Follow.RESTART
        self.writer = None
        if follows.step is Step.FINISHED:
            run.over = True
            self._undone()
            assert row.follow is Follow.END or run.cancelled or run.restarts > RESTARTS or not run.agent
        else:
            assert not run.cancelled, "CANCELKEEP"
            assert run.restarts <= RESTARTS
            self._undone()

    # --- the journal -------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.writer is not None)
    @rule()
    def log(self) -> None:
        assert self.writer is not None
        self.count += 1
        self.writer.entries.append(self.count)

    @precondition(lambda self: self.writer is not None)
    @rule(data=st.data())
    def fold(self, data: st.DataObject) -> None:
        assert self.writer is not None
        self._fold(data.draw(st.integers(0, len(self.writer.entries))))

    def _fold(self, up_to: int) -> None:
        """What came so far, from any point before what is missing."""
        assert self.writer is not None
        assert self.thread.active is not None
        assert self.thread.is_current(self.writer.attempt)
        applied = self.thread.active.applied_seq
        stretch = Stretch(1, tuple(str(one).encode() for one in self.writer.entries[:up_to]))
        came = arrival(applied, stretch)
        assert not came.gap
        by = self.writer.attempt.run_id
        named = metadata_to_struct({"run_id": by}).SerializeToString()
        made = [replace(checkpoint(int(one)), run_id=by, metadata=named) for one in came.fresh]
        self.thread.apply(made, Source("h1", 1, self.count), self.count)
        self.runs[by].written.update(self.writer.entries[applied:up_to])
        assert self.thread.active.applied_seq == max(applied, up_to), "CARRYSEQ"
        self.acknowledged.update(self.writer.entries[:up_to])

    # --- continue-as-new ---------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.scheduled)
    @rule()
    def compact(self) -> None:
        """The state goes to the next execution as bytes."""
        state = shed.until_it_fits(
            self.thread, lambda: thread_to_message(self.thread).SerializeToString(), 10_000_000, self.count
        ).state
        assert state is not None
        self.thread = thread_from_message(thread_pb2.Thread.FromString(state))

    @precondition(lambda self: not self.scheduled and self.thread.active is not None)
    @rule()
    def give_up_guest(self) -> None:
        assert self.thread.active is not None
        run = self.runs[self.thread.active.run_id]
        self.thread.give_up_guest(self.count)
        self.writer = None
        run.over = run.cancelled or not run.agent  # a client outside opens another session at once
        self._undone()

    # --- always ------------------------------------------------------------------------------------------------------

    @invariant()
    def every_acknowledged_operation_is_there(self) -> None:
        stored = {int(one) for group in self.thread.store.checkpoints.values() for one in group}
        assert self.acknowledged == stored

    @invariant()
    def runs_are_what_was_promised(self) -> None:
        for run_id, run in self.runs.items():
            found = self.thread.runs.get(run_id)
            assert (found is None or found.status.terminal) is run.over
            assert found is not None or not run.agent or run.gone
            assert found is None or not (run.gone and run.over) or self.thread.active is not None

    @invariant()
    def a_busy_thread_has_a_run_that_is_alive_or_queued(self) -> None:
        waiting = any(run.agent and not run.over for run in self.runs.values())
        assert (self.thread.status is ThreadStatus.BUSY) is waiting
        if waiting:
            assert self.thread.next_run(self.count) is not None
        if self.thread.active is not None:
            assert not self.thread.runs[self.thread.active.run_id].status.terminal


ThreadMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestThread = ThreadMachine.TestCase
