"""What a thread's agents asked and were told, and the faults that wait for them: files that outlive every process.

The host under test appends to a thread's record and reads its plan; the test does the reverse. Each line is one write
to a file opened for appending, so a process that is killed leaves whole lines.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import quote

from agentvisor.testing.faults import ANY, JOURNALLED, Fault, When


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of an agent, on its way to the host (before) or acknowledged by it (after)."""

    when: When
    name: str
    run_id: str
    attempt: int
    about: Mapping[str, object]
    """What tells it from others: a checkpoint's id and step, a task's channels."""


@dataclass(frozen=True, slots=True)
class Armed:
    """A fault that was injected, and how many lines the record had then."""

    id: str
    fault: Fault
    since: int


class Record:
    """The record and the plan of one thread."""

    def __init__(self, folder: Path, thread_id: str) -> None:
        name = quote(thread_id, safe="")
        self._record = folder / f"{name}.record"
        self._plan = folder / f"{name}.plan"

    # --- the host's side ---------------------------------------------------------------------------------------------

    def note(self, operation: Operation) -> list[Armed]:
        """Add an operation; the faults for which this is the moment, to be carried out in this order."""
        line = {
            "when": operation.when,
            "name": operation.name,
            "run": operation.run_id,
            "attempt": operation.attempt,
            "about": dict(operation.about),
        }
        _append(self._record, line)
        return self._due(operation) if self._plan.exists() else []

    def fired(self, armed: Armed) -> None:
        """Say so before it happens: whoever is killed by it cannot say it afterwards."""
        _append(self._record, {"fired": armed.id})

    def _due(self, operation: Operation) -> list[Armed]:
        lines = list(_lines(self._record))
        gone = {line["fired"] for line in lines if "fired" in line}
        due: list[Armed] = []
        for armed in self.armed():
            at = armed.fault.at
            if armed.id in gone or at.when != operation.when or not _is(at.operation, operation.name):
                continue
            so_far = [
                line
                for line in lines[armed.since :]
                if line.get("when") == at.when and _is(at.operation, str(line["name"]))
            ]
            if len(so_far) == at.number:
                due.append(armed)
        return due

    # --- the test's side ---------------------------------------------------------------------------------------------

    def arm(self, *faults: Fault) -> None:
        """Let these faults happen from now on."""
        since = sum(1 for _ in _lines(self._record))
        number = sum(1 for _ in _lines(self._plan))
        for index, fault in enumerate(faults, number):
            _append(self._plan, {"id": str(index), "since": since, **fault.to_json()})

    def armed(self) -> list[Armed]:
        """All that was injected, happened or not."""
        return [Armed(str(line["id"]), Fault.from_json(line), int(str(line["since"]))) for line in _lines(self._plan)]

    def happened(self) -> list[Fault]:
        """Those that happened, in order."""
        by_id = {armed.id: armed.fault for armed in self.armed()}
        return [by_id[str(line["fired"])] for line in _lines(self._record) if "fired" in line]

    def operations(self) -> list[Operation]:
        """All so far, in the order in which the host's end saw them."""
        return [
            Operation(
                cast("When", line["when"]),
                str(line["name"]),
                str(line["run"]),
                int(str(line["attempt"])),
                cast("dict[str, object]", line["about"]),
            )
            for line in _lines(self._record)
            if "when" in line
        ]


def _is(wanted: str, name: str) -> bool:
    return name in JOURNALLED if wanted == ANY else wanted == name


def _append(file: Path, line: Mapping[str, object]) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{json.dumps(line)}\n".encode())
    finally:
        os.close(descriptor)


def _lines(file: Path) -> Iterator[dict[str, object]]:
    if file.exists():
        for line in file.read_text().splitlines():
            yield json.loads(line)
