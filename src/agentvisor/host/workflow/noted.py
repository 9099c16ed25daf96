"""What workflows log by the host that runs them: once, and not again when they are replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from temporalio import workflow

Note = Callable[[str, str, Mapping[str, str]], None]
"""Takes the level, the event's name and its fields."""

_notes: list[Note] = []


def note_into(note: Note) -> None:
    """Log with this from now on, beside those before."""
    if note not in _notes:
        _notes.append(note)


def noted(level: str, event: str, **fields: str) -> None:
    """Log an event of this workflow; the host's table has it (host/log_events.py)."""
    if workflow.unsafe.is_replaying():
        return
    with workflow.unsafe.sandbox_unrestricted():
        for note in _notes:
            note(level, event, fields)
