"""Runs and their attempts: statuses, what can end an attempt, and the table of what follows from each ending."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from agentvisor.core.ids import AttemptId, RunId


class RunStatus(IntEnum):
    PENDING = 1
    RUNNING = 2
    SUCCESS = 3
    ERROR = 4
    TIMEOUT = 5
    INTERRUPTED = 6

    @property
    def terminal(self) -> bool:
        return self not in (RunStatus.PENDING, RunStatus.RUNNING)


class Ending(IntEnum):
    """What ended an attempt; the numbers are those of the wire."""

    COMPLETED = 1
    PAUSED = 2
    CANCELLED = 3
    HANDOVER = 4
    AGENT_ERROR = 5
    AGENT_SIGNAL = 6
    AGENT_OUT_OF_MEMORY = 7
    TIME_BUDGET = 8
    GUEST_GONE = 9
    GUEST_UNRESPONSIVE = 10
    HOST_GONE = 11
    COULD_NOT_START = 12
    NOT_STARTED = 13
    HOST_STOPPED = 14
    REPORT_LOST = 15


class Follow(IntEnum):
    """What the thread does after an ending."""

    END = 1
    RESTART = 2
    """Again, within the restart budget."""
    AGAIN = 3
    """Again at once; costs no restart."""
    ATTACH = 4
    """The guest lives: give it a new token."""


@dataclass(frozen=True, slots=True)
class Consequence:
    follow: Follow
    status: RunStatus
    """The run's status where it ends here (also once the budget is used up)."""
    says: str
    """What the caller reads."""


CONSEQUENCES: dict[Ending, Consequence] = {
    Ending.COMPLETED: Consequence(Follow.END, RunStatus.SUCCESS, "the run completed"),
    Ending.PAUSED: Consequence(Follow.END, RunStatus.SUCCESS, "the agent waits for an answer; send it with a new run"),
    Ending.CANCELLED: Consequence(Follow.END, RunStatus.INTERRUPTED, "the run was cancelled"),
    Ending.HANDOVER: Consequence(Follow.ATTACH, RunStatus.ERROR, "the thread's history was compacted under the run"),
    Ending.AGENT_ERROR: Consequence(Follow.END, RunStatus.ERROR, "the agent raised an error"),
    Ending.AGENT_SIGNAL: Consequence(Follow.RESTART, RunStatus.ERROR, "the agent process was killed by a signal"),
    Ending.AGENT_OUT_OF_MEMORY: Consequence(Follow.RESTART, RunStatus.ERROR, "the agent process ran out of memory"),
    Ending.TIME_BUDGET: Consequence(
        Follow.END, RunStatus.TIMEOUT, "the run's time budget (temporal.run_timeout) is used up"
    ),
    Ending.GUEST_GONE: Consequence(Follow.RESTART, RunStatus.ERROR, "the guest sandbox is gone"),
    Ending.GUEST_UNRESPONSIVE: Consequence(Follow.RESTART, RunStatus.ERROR, "the guest sandbox does not answer"),
    Ending.HOST_GONE: Consequence(Follow.RESTART, RunStatus.ERROR, "the host stopped sending heartbeats"),
    Ending.COULD_NOT_START: Consequence(Follow.END, RunStatus.ERROR, "the agent could not be started"),
    Ending.NOT_STARTED: Consequence(Follow.AGAIN, RunStatus.INTERRUPTED, "the attempt was cancelled before it started"),
    Ending.HOST_STOPPED: Consequence(Follow.AGAIN, RunStatus.ERROR, "the host was stopped"),
    Ending.REPORT_LOST: Consequence(Follow.RESTART, RunStatus.ERROR, "Temporal refused the attempt's report"),
}
"""Total: every ending has its row."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """`temporal.run_restart`; times in milliseconds."""

    max_attempts: int = 3
    initial_backoff_ms: int = 2_000
    max_backoff_ms: int = 30_000
    max_elapsed_ms: int = 600_000
    reset_on_progress: bool = False
    """An attempt that stored a new checkpoint starts the count of restarts, and the wait, anew."""


class RunKind(IntEnum):
    AGENT = 1
    SESSION = 2
    UPDATE = 3
    """The agent's graph changes the thread's state, as a whole or not at all; nothing of it is run."""


class Multitask(IntEnum):
    """What a run does about those of its thread that have not ended when it comes."""

    ENQUEUE = 1
    REJECT = 2
    INTERRUPT = 3
    """They are cancelled, and it goes on from what they have done."""
    ROLLBACK = 4
    """They are undone: it goes on from where they began."""


class CancelAction(IntEnum):
    """What becomes of a run that somebody wants no more."""

    INTERRUPT = 1
    """It ends; what it has done stays."""
    ROLLBACK = 2
    """It is undone: the run and its checkpoints are gone."""
    DELETE = 3
    """The same, also of a run that has ended."""


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What decisions need of a run's specification; `body` is the whole of it, encoded."""

    run_id: RunId
    agent: str
    kind: RunKind
    multitask: Multitask
    restart: RestartPolicy
    timeout_ms: int
    heartbeat_timeout_ms: int
    host_queue: str
    body: bytes
    resumes: bool = False
    """It goes on where the last run stopped: it brings an answer, or no input."""
    answers: tuple[str, ...] = ()
    """The interrupts that it answers."""
    answers_graph: bool = False
    """They are those of a graph: its checkpoint knows them, and the thread does not."""
    abandons: bool = False
    """It gives up what waits."""
    after_ms: int = 0
    """It waits so long from its acceptance on."""
    webhook: str = ""
    """URL that is told of its end."""


@dataclass(slots=True)
class Attempt:
    """The record of one attempt; times are milliseconds since the epoch, 0 while unknown."""

    attempt: int
    scheduled_at_ms: int
    started_at_ms: int = 0
    ended_at_ms: int = 0
    ending: Ending | None = None
    host_id: str = ""
    reason: str = ""
    committed_at_ms: int = 0
    progressed: bool = False
    """It stored a checkpoint that the thread did not have."""


@dataclass(slots=True)
class Run:
    """One run of a thread with all its attempts."""

    spec: RunSpec
    status: RunStatus
    created_at_ms: int
    updated_at_ms: int
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    error_type: str = ""
    error_message: str = ""
    output: bytes = b""
    cancel_requested: bool = False
    paused: bool = False
    bare: bool = False
    """A compaction left out its input and output."""
    rolled_back: bool = False
    """Nobody shall see it any more: it is undone as soon as no attempt is alive."""
    head: str = ""
    """The root's checkpoint at which its thread stood when it ended; runs that came after it may have gone on."""

    @property
    def run_id(self) -> RunId:
        return self.spec.run_id

    @property
    def current(self) -> AttemptId:
        return AttemptId(self.spec.run_id, len(self.attempts))

    @property
    def is_agent(self) -> bool:
        return self.spec.kind is RunKind.AGENT

    @property
    def due_at_ms(self) -> int:
        """When its turn may come, on Temporal's clock."""
        return self.created_at_ms + self.spec.after_ms

    @property
    def is_session(self) -> bool:
        return self.spec.kind is RunKind.SESSION

    @property
    def is_update(self) -> bool:
        return self.spec.kind is RunKind.UPDATE
