"""What a webhook is told of a run's end, as the thread knew it then: the run may be gone when it is told."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentvisor.core.ids import ROOT
from agentvisor.core.records import CheckpointKey
from agentvisor.core.runs import Run
from agentvisor.core.store import Store

MOST_NOTICES = 50
"""Kept of one thread: past that, the oldest are given up."""

_NOTICE = 512
"""Bytes of one beside its texts."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One run's end."""

    run: Run
    """As it ended, without its input and output."""
    at: CheckpointKey | None
    """Where its thread stood then; None: it had no checkpoint, or the run was rolled back."""
    ended_at_ms: int

    @staticmethod
    def of(run: Run, store: Store, now_ms: int) -> Notice:
        """The notice of a run that has just ended."""
        return Notice(replace(run, attempts=list(run.attempts), bare=True), _where(run, store), now_ms)

    @property
    def stored_bytes(self) -> int:
        texts = len(self.run.spec.webhook) + len(self.run.error_message.encode()) + len(self.run.error_type)
        reasons = sum(len(one.reason.encode()) + 96 for one in self.run.attempts)
        return _NOTICE + texts + reasons


def _where(run: Run, store: Store) -> CheckpointKey | None:
    if run.rolled_back:
        return None
    if (head := store.heads.get(ROOT)) is not None:
        return CheckpointKey(ROOT, head)
    save = store.latest_save()
    return save.key if save is not None else None
