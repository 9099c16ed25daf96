"""Names of threads, runs and attempts, and the one rule that a thread id must keep at every door."""

from __future__ import annotations

import re
from typing import NamedTuple, NewType

from agentvisor.core.errors import InvalidInput

ThreadId = NewType("ThreadId", str)
RunId = NewType("RunId", str)
CheckpointId = NewType("CheckpointId", str)
Namespace = NewType("Namespace", str)
BlobKey = NewType("BlobKey", bytes)

ROOT = Namespace("")

# HTTP clients take . and .. out of a path before they send it: such a thread could not be reached.
_ID = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._:-]{1,255}")
_RULE = "use 1 to 255 characters of A-Z a-z 0-9 . _ : -, and more than . or .. alone"


def without_tasks(namespace: Namespace) -> Namespace:
    """Where a subgraph that keeps its state from call to call has it: LangGraph leaves the tasks' ids out."""
    parts = (part.partition(":")[0] for part in namespace.split("|") if not part.isdigit())
    return Namespace("|".join(parts))


class AttemptId(NamedTuple):
    """One attempt of one run; attempts count from 1."""

    run_id: RunId
    attempt: int


def thread_id(text: str) -> ThreadId:
    """Check a thread id: 1 to 255 of `[A-Za-z0-9._:-]`, not `.` or `..`; `InvalidInput` otherwise."""
    if not _ID.fullmatch(text):
        shown = text if len(text) <= 80 else text[:77] + "..."
        raise InvalidInput(f"thread id {shown!r} is not allowed: {_RULE}", field="thread_id")
    return ThreadId(text)


def run_id(text: str) -> RunId:
    """Check a run id by the rule of thread ids."""
    if not _ID.fullmatch(text):
        raise InvalidInput(f"run id {text[:80]!r} is not allowed: {_RULE}", field="run_id")
    return RunId(text)
