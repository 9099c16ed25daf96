"""A cron: a run that is started again and again, by the clock."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, cast
from zoneinfo import ZoneInfo

from agentvisor.core.cron_schedule import CronSchedule
from agentvisor.core.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Cron:
    """What is started, when, and for whom."""

    cron_id: str
    owner: str
    assistant_id: str
    thread_id: str | None
    """None: each run has a thread of its own."""
    schedule: str
    timezone: str | None = None
    """None: UTC."""
    end_time_ms: int | None = None
    enabled: bool = True
    on_run_completed: str | None = None
    """Of runs with threads of their own: "delete" (as None) or "keep"."""
    payload: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The body that starts a run."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    created_at_ms: int = 0
    updated_at_ms: int = 0

    @property
    def clock(self) -> str:
        """All that says when it is due, in one text: two crons with the same one are due at the same times."""
        return json.dumps([self.schedule, self.timezone, self.end_time_ms, self.enabled])

    def next_run_ms(self, now_ms: int) -> int | None:
        """When it is due next; None: never again, or not while it is disabled."""
        if not self.enabled:
            return None
        at = datetime.fromtimestamp(now_ms / 1000, UTC)
        due = CronSchedule.parse(self.schedule).next_after(at, zone(self.timezone))
        at_ms = None if due is None else int(due.timestamp() * 1000)
        return None if at_ms is None or (self.end_time_ms is not None and at_ms > self.end_time_ms) else at_ms

    def encoded(self) -> bytes:
        """As it is kept."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def decoded(data: bytes) -> Cron:
    """A cron that was kept; what another version has added is left out."""
    found = cast("dict[str, Any]", json.loads(data))
    return Cron(**{name: value for name, value in found.items() if name in Cron.__dataclass_fields__})


def zone(name: str | None) -> ZoneInfo:
    """The time zone of that name; `InvalidInput`."""
    try:
        return ZoneInfo(name or "UTC")
    except (LookupError, ValueError, OSError):
        raise InvalidInput(
            f"timezone {str(name)[:80]!r} is unknown: write a name of the IANA database, such as Europe/Berlin",
            field="timezone",
        ) from None
