"""Threads and runs of core to messages and back: what continue-as-new carries and queries answer."""

from __future__ import annotations

from typing import Literal

from agentvisor.core.attempts import Active, Source
from agentvisor.core.errors import Unavailable
from agentvisor.core.ids import CheckpointId, Namespace, RunId, ThreadId
from agentvisor.core.lifetimes import Lifetime, Strategy
from agentvisor.core.notices import Notice
from agentvisor.core.owners import Owner
from agentvisor.core.records import CheckpointKey
from agentvisor.core.runs import (
    Attempt,
    CancelAction,
    Ending,
    Multitask,
    RestartPolicy,
    Run,
    RunKind,
    RunSpec,
    RunStatus,
)
from agentvisor.core.thread import STATE_VERSION, Settings, Thread
from agentvisor.protocol.convert import (
    struct_to_bytes,
)
from agentvisor.protocol.rollback import before_from_message, before_to_message
from agentvisor.protocol.stores import store_from_message, store_to_message
from agentvisor.protocol.v1 import journal_pb2, run_pb2, thread_pb2


def spec_from_message(message: run_pb2.RunSpec) -> RunSpec:
    """The decisions' part of a specification, with the whole as its body."""
    restart = message.restart
    return RunSpec(
        run_id=RunId(message.run_id),
        agent=message.agent,
        kind=RunKind(message.kind or RunKind.AGENT),
        multitask=Multitask(message.multitask_strategy or Multitask.ENQUEUE),
        restart=RestartPolicy(
            restart.max_attempts,
            restart.initial_backoff_ms,
            restart.max_backoff_ms,
            restart.max_elapsed_ms,
            restart.reset_on_progress,
        ),
        timeout_ms=message.timeout_ms,
        heartbeat_timeout_ms=message.heartbeat_timeout_ms,
        host_queue=message.host_queue,
        body=message.SerializeToString(),
        resumes=bool(message.command) or message.input in (b"", b"null"),
        answers=tuple(message.answers),
        answers_graph=message.answers_graph,
        abandons=message.abandons,
        after_ms=message.after_ms,
        webhook=message.webhook,
    )


def action_of(message: run_pb2.CancelRun) -> CancelAction:
    """What is asked for; hosts of earlier versions say nothing, and mean an interrupt."""
    return CancelAction(message.action or CancelAction.INTERRUPT)


def without_supersteps(spec: RunSpec) -> RunSpec:
    """What stays of an update's specification once it has ended: what it has made is in the thread."""
    message = run_pb2.RunSpec.FromString(spec.body)
    message.ClearField("supersteps")
    return spec_from_message(message)


GIVEN: tuple[Literal["input", "command", "context", "supersteps"], ...] = ("input", "command", "context", "supersteps")
"""Fields of a run's spec: what its agent is given."""


def run_to_message(run: Run, *, whole: bool = True) -> run_pb2.Run:
    """A run; without `whole` its input, command and output are left out, of a bare one more."""
    spec = run_pb2.RunSpec.FromString(run.spec.body)
    whole = whole and not run.bare
    if not whole:
        for name in (*GIVEN, "config", "kwargs", "metadata") if run.bare else GIVEN:
            spec.ClearField(name)
    return run_pb2.Run(
        spec=spec,
        status=run_pb2.RunStatus.ValueType(run.status),
        created_at_ms=run.created_at_ms,
        updated_at_ms=run.updated_at_ms,
        attempts=[_attempt_to_message(one) for one in run.attempts],
        error_type=run.error_type,
        error_message=run.error_message,
        output=run.output if whole else b"",
        cancel_requested=run.cancel_requested,
        paused=run.paused,
        rolled_back=run.rolled_back,
        head=run.head,
    )


def run_from_message(message: run_pb2.Run) -> Run:
    return Run(
        spec=spec_from_message(message.spec),
        status=RunStatus(message.status),
        created_at_ms=message.created_at_ms,
        updated_at_ms=message.updated_at_ms,
        attempts=[_attempt_from_message(one) for one in message.attempts],
        error_type=message.error_type,
        error_message=message.error_message,
        output=message.output,
        cancel_requested=message.cancel_requested,
        paused=message.paused,
        rolled_back=message.rolled_back,
        head=message.head,
    )


def _attempt_to_message(attempt: Attempt) -> run_pb2.AttemptRecord:
    return run_pb2.AttemptRecord(
        attempt=attempt.attempt,
        scheduled_at_ms=attempt.scheduled_at_ms,
        started_at_ms=attempt.started_at_ms,
        ended_at_ms=attempt.ended_at_ms,
        ending=run_pb2.Ending.ValueType(attempt.ending or 0),
        host_id=attempt.host_id,
        reason=attempt.reason,
        committed_at_ms=attempt.committed_at_ms,
        progressed=attempt.progressed,
    )


def _attempt_from_message(message: run_pb2.AttemptRecord) -> Attempt:
    return Attempt(
        attempt=message.attempt,
        scheduled_at_ms=message.scheduled_at_ms,
        started_at_ms=message.started_at_ms,
        ended_at_ms=message.ended_at_ms,
        ending=Ending(message.ending) if message.ending else None,
        host_id=message.host_id,
        reason=message.reason,
        committed_at_ms=message.committed_at_ms,
        progressed=message.progressed,
    )


def thread_to_message(
    thread: Thread, store: thread_pb2.Store | None = None, *, whole_run: RunId | None = None
) -> thread_pb2.Thread:
    """A thread; where they are given, with this part of its store, and with only this run's input and output."""
    is_whole = store is None
    if store is None:
        store = store_to_message(thread.store, thread.store.all_checkpoints(), blobs=True)
    message = thread_pb2.Thread(
        version=STATE_VERSION,
        thread_id=thread.thread_id,
        created_at_ms=thread.created_at_ms,
        updated_at_ms=thread.updated_at_ms,
        state_updated_at_ms=thread.state_updated_at_ms,
        config=run_pb2.PinnedConfig(pending_writes_enabled=thread.pending_writes_enabled),
        store=store,
        runs=[run_to_message(run, whole=whole_run in (None, run.run_id)) for run in thread.runs.values()],
        compactions=thread.compactions,
        failure=thread.failure,
        settings=settings_to_message(thread.settings),
        left_out=thread.left_out,
        incarnation=thread.incarnation,
        owner=thread.owner,
        lifetime=lifetime_to_message(thread.lifetime),
        used_at_ms=thread.used_at_ms,
        swept_at_ms=thread.swept_at_ms,
        sweep_run_id=thread.sweep_run_id,
    )
    message.metadata.ParseFromString(thread.metadata)
    if thread.active is not None:
        message.active.CopyFrom(_active_to_message(thread.active))
    message.notices.extend(notice_to_message(one) for one in thread.notices.values())
    if is_whole and thread.before is not None:
        message.before.CopyFrom(before_to_message(thread.before, thread.store))
    return message


def thread_from_message(message: thread_pb2.Thread) -> Thread:
    """The thread; `Unavailable` where a newer version has written it, whose rules this one does not know (B16).

    In the workflow that fails the task, so that a newer host takes it.
    """
    if message.version > STATE_VERSION:
        raise Unavailable(
            f"thread {message.thread_id} has state of version {message.version}, this host knows versions up to "
            f"{STATE_VERSION}: upgrade this host",
            thread_id=message.thread_id,
        )
    pinned = message.config
    thread = Thread(
        thread_id=ThreadId(message.thread_id),
        created_at_ms=message.created_at_ms,
        updated_at_ms=message.updated_at_ms,
        pending_writes_enabled=pinned.pending_writes_enabled if pinned.HasField("pending_writes_enabled") else None,
        metadata=struct_to_bytes(message.metadata),
        store=store_from_message(message.store),
        state_updated_at_ms=message.state_updated_at_ms,
        compactions=message.compactions,
        failure=message.failure,
        settings=settings_from_message(message.settings),
        left_out=dict(message.left_out),
        incarnation=incarnation_of(message),
        owner=Owner(message.owner),
        lifetime=lifetime_from_message(message.lifetime) if message.HasField("lifetime") else None,
        used_at_ms=message.used_at_ms or message.updated_at_ms,
        swept_at_ms=message.swept_at_ms,
        sweep_run_id=message.sweep_run_id,
    )
    for one in message.runs:
        run = run_from_message(one)
        thread.runs[run.run_id] = run
    if message.HasField("active"):
        thread.active = _active_from_message(message.active)
    if message.HasField("before"):
        thread.before = before_from_message(message.before, thread.store)
    for one in map(notice_from_message, message.notices):
        thread.notices[one.run.run_id] = one
    return thread


def lifetime_to_message(lifetime: Lifetime | None) -> run_pb2.Lifetime | None:
    """None: there is no limit."""
    if lifetime is None:
        return None
    return run_pb2.Lifetime(
        ttl_ms=lifetime.ttl_ms,
        strategy=run_pb2.ExpiryStrategy.ValueType(lifetime.strategy),
        while_waiting=lifetime.while_waiting,
    )


def lifetime_from_message(message: run_pb2.Lifetime) -> Lifetime:
    """A strategy that this version does not know is an error of the host's door, not of the workflow."""
    return Lifetime(message.ttl_ms, Strategy(message.strategy or Strategy.DELETE), message.while_waiting)


def notice_to_message(notice: Notice, thread_id: str = "") -> run_pb2.Notice:
    """A notice; with a thread's id it is what the webhook's activity is given."""
    run = run_to_message(notice.run, whole=False)
    return run_pb2.Notice(
        thread_id=thread_id,
        run=run,
        namespace=notice.at.namespace if notice.at else "",
        checkpoint_id=notice.at.checkpoint_id if notice.at else "",
        ended_at_ms=notice.ended_at_ms,
    )


def notice_from_message(message: run_pb2.Notice) -> Notice:
    run = run_from_message(message.run)
    run.bare = True
    at = CheckpointKey(Namespace(message.namespace), CheckpointId(message.checkpoint_id))
    return Notice(run, at if at.checkpoint_id else None, message.ended_at_ms)


def incarnation_of(message: thread_pb2.Thread) -> str:
    """Tells a thread from others of the same id; one from before the field by when it was created."""
    return message.incarnation or f"{message.created_at_ms:x}"


def source_of(log: journal_pb2.Log) -> Source:
    return Source(log.host_id, log.started_at_ms, log.committed_at_ms)


def settings_to_message(settings: Settings) -> run_pb2.ThreadSettings:
    return run_pb2.ThreadSettings(
        compact_events=settings.compact_events,
        compact_bytes=settings.compact_bytes,
        state_bytes=settings.state_bytes,
        checkpoint_history=settings.checkpoint_history,
        run_history=settings.run_history,
        compact_signals=settings.compact_signals,
        compact_updates=settings.compact_updates,
    )


def settings_from_message(message: run_pb2.ThreadSettings) -> Settings:
    return Settings(
        message.compact_events,
        message.compact_bytes,
        message.state_bytes,
        message.checkpoint_history,
        message.run_history,
        message.compact_signals,
        message.compact_updates,
    )


def _active_to_message(active: Active) -> thread_pb2.ActiveAttempt:
    return thread_pb2.ActiveAttempt(
        run_id=active.run_id,
        attempt=active.attempt,
        applied_seq=active.applied_seq,
        host_queue=active.host_queue,
        attach_offers=active.attach_offers,
        deadline_ms=active.deadline_ms,
    )


def _active_from_message(message: thread_pb2.ActiveAttempt) -> Active:
    return Active(
        run_id=RunId(message.run_id),
        attempt=message.attempt,
        deadline_ms=message.deadline_ms,
        applied_seq=message.applied_seq,
        host_queue=message.host_queue,
        attach_offers=message.attach_offers,
    )
