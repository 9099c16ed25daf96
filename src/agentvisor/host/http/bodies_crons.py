"""Bodies of requests about crons."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agentvisor.core.errors import InvalidInput
from agentvisor.host.http.paths import ThreadInPath
from agentvisor.host.http.run_create import JsonObject, RunCreate

OnRunCompleted = Literal["delete", "keep"]
CRON_FIELDS = (
    "cron_id", "assistant_id", "thread_id", "on_run_completed", "end_time", "schedule", "timezone", "created_at",
    "updated_at", "user_id", "payload", "next_run_date", "metadata", "enabled",
)  # fmt: skip
SortBy = Literal[
    "cron_id", "assistant_id", "thread_id", "created_at", "updated_at", "next_run_date", "end_time", "schedule"
]
_OF_ONE_RUN = (
    "command", "checkpoint", "checkpoint_id", "after_seconds", "on_disconnect", "on_completion", "if_not_exists",
    "on_interrupt", "raise_error", "strict_resume",
)  # fmt: skip
"""Fields that mean one run, at one time, and no cron."""
_CLOCK = ("schedule", "timezone", "end_time", "enabled", "on_run_completed")


def _in_utc(time: datetime) -> datetime:
    """The same moment; one without a zone is of UTC."""
    try:
        return time.astimezone(UTC) if time.tzinfo is not None else time.replace(tzinfo=UTC)
    except OverflowError:  # 9999-12-31 west of Greenwich
        raise ValueError("no year of this calendar has it in UTC: write a time of the years 1 to 9999") from None


_Moment = Annotated[datetime, AfterValidator(_in_utc)]


class CronCreate(RunCreate):
    """A cron: a run, and when it is due."""

    schedule: str = Field(description="Five fields of cron: minute, hour, day of month, month, day of week.")
    timezone: str | None = Field(
        default=None, min_length=1, description="A name of the IANA database; UTC when left out."
    )
    end_time: _Moment | None = Field(default=None, description="After which it is due no more; UTC if it says none.")
    enabled: bool = True
    on_run_completed: OnRunCompleted | None = Field(
        default=None, description="Of a cron without a thread: what becomes of the thread of each run."
    )


class CronPatch(RunCreate):
    """What to change of a cron."""

    assistant_id: str = ""
    schedule: str | None = None
    timezone: str | None = Field(default=None, min_length=1)
    end_time: _Moment | None = Field(default=None, description="null: it has no end any more.")
    enabled: bool | None = None
    on_run_completed: OnRunCompleted | None = None


class CronFilter(BaseModel):
    """Which crons are meant."""

    model_config = ConfigDict(extra="forbid")

    assistant_id: str | None = None
    thread_id: ThreadInPath | None = None
    metadata: JsonObject | None = None
    enabled: bool | None = None


class CronSearch(CronFilter):
    """Which crons to list, and how."""

    limit: int = Field(default=10, ge=1, le=1000, strict=True)
    offset: int = Field(default=0, ge=0, strict=True)
    sort_by: SortBy | None = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[str] | None = None


def check(body: RunCreate) -> None:
    """Refuse what is for one run alone."""
    for field in _OF_ONE_RUN:
        if field in body.model_fields_set and getattr(body, field) is not None:
            raise InvalidInput(f"{field} is for one run, and not for a cron: leave it out", field=field)


def payload(body: RunCreate) -> JsonObject:
    """What starts a run."""
    return body.model_dump(mode="json", exclude_unset=True, exclude={*_CLOCK, *_OF_ONE_RUN})


def run_of(payload: JsonObject) -> RunCreate:
    """The body of a run that this starts."""
    return RunCreate.model_validate(payload)


def at_ms(time: datetime | None) -> int | None:
    """A time that a caller has given."""
    return None if time is None else int(time.timestamp() * 1000)
