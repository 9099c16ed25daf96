"""The outside records: what agents of a thread did and were told, in the order in which it happened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast


@dataclass(frozen=True, slots=True)
class Record:
    """One line that an agent wrote outside (`tortured_agent.note`)."""

    what: str
    run: str
    attempt: int
    pid: int
    at: float
    """Seconds since the epoch, by the machine's clock."""
    line: int
    name: str = ""
    """Of a task: the same wherever it runs again, whatever its checkpoint is."""
    task: str = ""
    checkpoint: str = ""
    parent: str | None = None
    step: int = 0


class Records:
    """The folder in which agents write one file for each thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def file_of(self, thread_id: str) -> Path:
        return self.folder / f"{thread_id}.jsonl"

    def of(self, thread_id: str) -> list[Record]:
        """All lines so far; one that is still being written is not there yet."""
        path = self.file_of(thread_id)
        return list(_parsed(path.read_text())) if path.exists() else []


def _parsed(text: str) -> Iterator[Record]:
    for number, line in enumerate(text.split("\n")[:-1], 1):
        facts = cast("dict[str, object]", json.loads(line))
        parent = facts.get("parent")
        yield Record(
            what=str(facts["what"]),
            run=str(facts["run"]),
            attempt=int(str(facts["attempt"])),
            pid=int(str(facts["pid"])),
            at=float(str(facts["at"])),
            line=number,
            name=str(facts.get("name", "")),
            task=str(facts.get("task", "")),
            checkpoint=str(facts.get("checkpoint", "")),
            parent=None if parent is None else str(parent),
            step=int(str(facts.get("step", 0))),
        )
