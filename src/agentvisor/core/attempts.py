"""The attempt that may write: what is known of it while it lives, how it closes, and what follows of that."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from agentvisor.core.ids import AttemptId, RunId
from agentvisor.core.runs import CONSEQUENCES, Attempt, Ending, Follow, Run

ATTACH_OFFERS = 3
"""How often a live guest's host is offered its token again before the guest counts as gone (REATTACH)."""
ATTACH_OFFERS_UNPOLLED = 1
"""The same where that host did not even ask: it is gone, as a rule; or Temporal itself was away."""


@dataclass(slots=True)
class Active:
    """The attempt that may write. CARRYSEQ: `applied_seq` crosses continue-as-new with it."""

    run_id: RunId
    attempt: int
    deadline_ms: int
    applied_seq: int = 0
    host_queue: str = ""
    attach_offers: int = 0

    @property
    def id(self) -> AttemptId:
        return AttemptId(self.run_id, self.attempt)

    @property
    def attaching(self) -> bool:
        """The guest lives on `host_queue` and waits for a token; nobody else may start this attempt."""
        return bool(self.host_queue)

    def offer_again(self, close: Close) -> bool:
        """REATTACH: whether a token that nobody took is offered to the same host again; counts the offer."""
        offers = ATTACH_OFFERS if close.polled else ATTACH_OFFERS_UNPOLLED
        if close.ending is Ending.HOST_GONE and not close.heartbeat_seen and self.attach_offers < offers:
            self.attach_offers += 1
            return True
        return False


@dataclass(frozen=True, slots=True)
class Source:
    """Which host logged something, and when, by its clock; empty where nothing was heard of it."""

    host_id: str = ""
    started_at_ms: int = 0
    committed_at_ms: int = 0

    def attribute(self, attempt: Attempt) -> None:
        """Note what it says of the attempt."""
        attempt.host_id = self.host_id or attempt.host_id
        attempt.started_at_ms = self.started_at_ms or attempt.started_at_ms
        attempt.committed_at_ms = max(attempt.committed_at_ms, self.committed_at_ms)


@dataclass(frozen=True, slots=True)
class Close:
    """How an attempt ended, as far as its activity's close event tells."""

    ending: Ending
    error_type: str = ""
    error_message: str = ""
    output: bytes = b""
    code: int = 0
    host_queue: str = ""
    source: Source = Source()
    heartbeat_seen: bool = True
    """False: no heartbeat ever came, so that nobody may have taken the task (REATTACH)."""
    polled: bool = True
    """False: no host asked for the task in all its time, which a lost poll does not explain."""

    def error_of(self, run: Run, *, restarts: bool) -> tuple[str, str]:
        """Type and message of the error that a run ends with; `restarts`: it might have begun anew, but for this."""
        consequence = CONSEQUENCES[self.ending]
        message = self.error_message or consequence.says
        if consequence.follow is Follow.RESTART and restarts:
            times = f"{len(run.attempts)} attempt{'' if len(run.attempts) == 1 else 's'}"
            message += f" (after {times}; start a new run to go on from the latest checkpoint)"
        return self.error_type or self.ending.name.title().replace("_", ""), message


class Step(Enum):
    """What the workflow does next with the run."""

    FINISHED = "finished"
    AGAIN = "again"
    ATTACH = "attach"


@dataclass(frozen=True, slots=True)
class Next:
    step: Step
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """The end of an attempt, or of a run, as it is counted and traced."""

    run: Run
    attempt: Attempt | None
    """None: the run itself has ended."""
    outcome: str
    """The run's status, in small letters; `paused` where it waits for an answer; `rolled_back` where it was undone."""
    seconds: float
    """Since its acceptance."""

    @classmethod
    def of(cls, run: Run, attempt: Attempt | None, now_ms: int) -> End:
        outcome = "rolled_back" if run.rolled_back else "paused" if run.paused else run.status.name.lower()
        return cls(run, attempt, outcome, max(0, now_ms - run.created_at_ms) / 1000)
