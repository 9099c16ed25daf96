"""Schedules as cron has them, of five fields: minute, hour, day of the month, month, day of the week."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from types import MappingProxyType

from agentvisor.core.errors import InvalidInput

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_LONGEST_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LONGEST = 256
"""Characters."""
_YEARS = 9
"""Within which even 29 February comes, also around 2100."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    first: int
    last: int
    names: Mapping[str, int] = field(default_factory=dict[str, int])

    def parse(self, text: str) -> frozenset[int]:
        """The numbers that a field stands for."""
        return frozenset(number for part in text.split(",") for number in self._part(part, text))

    def _part(self, part: str, whole: str) -> Iterable[int]:
        span, slash, step = part.partition("/")
        if slash and not (step.isascii() and step.isdigit() and 1 <= int(step[:4]) <= self.last):
            raise self._wrong(whole, f"after / comes a step from 1 to {self.last}")
        if span == "*":
            first, last = self.first, self.last
        else:
            begin, dash, end = span.partition("-")
            first = self._number(begin, whole)
            last = self._number(end, whole) if dash else (self.last if slash else first)
        if first > last:
            raise self._wrong(whole, "a range begins with its smaller end")
        return range(first, last + 1, int(step) if slash else 1)

    def _number(self, text: str, whole: str) -> int:
        if text.lower() in self.names:
            return self.names[text.lower()]
        if not (text.isascii() and text.isdigit() and self.first <= int(text[:4]) <= self.last):
            named = f", or {', '.join(self.names)}" if self.names else ""
            raise self._wrong(whole, f"{text[:20]!r} is none of {self.first} to {self.last}{named}")
        return int(text)

    def _wrong(self, whole: str, why: str) -> InvalidInput:
        return InvalidInput(f"schedule: {self.name} {whole[:40]!r}: {why}", field="schedule")


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, MappingProxyType({name: number for number, name in enumerate(_MONTHS, 1)})),
    _Field("day of week", 0, 7, MappingProxyType({name: number for number, name in enumerate(_DAYS)})),
)


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """The minutes at which something is due."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int] | None
    """None: whichever."""
    months: frozenset[int]
    weekdays: frozenset[int] | None
    """Sunday is 0; None: whichever. With `days`, a day of either is meant."""

    @staticmethod
    def parse(text: str) -> CronSchedule:
        """The schedule; `InvalidInput` says what is wrong with it."""
        fields = text.split()
        if len(text) > _LONGEST or len(fields) != len(_FIELDS):
            raise InvalidInput(
                f"schedule {text[:80]!r} has {len(fields)} fields: write the five of cron, minute, hour, day of month, "
                "month and day of week, such as '0 9 * * 1-5'",
                field="schedule",
            )
        minutes, hours, days, months, weekdays = (field.parse(one) for field, one in zip(_FIELDS, fields, strict=True))
        made = CronSchedule(
            minutes,
            hours,
            None if fields[2].startswith("*") and len(days) == 31 else days,
            months,
            None if fields[4].startswith("*") and len(weekdays) == 8 else frozenset(day % 7 for day in weekdays),
        )
        if made.weekdays is None and days and not any(min(days) <= _LONGEST_MONTH[one - 1] for one in months):
            raise InvalidInput(f"schedule {text[:80]!r} names a day that no such month has", field="schedule")
        return made

    def expressions(self) -> list[str]:
        """The same for Temporal, together: there, a day must be of both, where cron means either."""
        head = f"{_listed(self.minutes, 60)} {_listed(self.hours, 24)}"
        month = _listed(self.months, 12)
        days = "*" if self.days is None else _listed(self.days, 31)
        weekdays = "*" if self.weekdays is None else _listed(self.weekdays, 7)
        if self.days is None or self.weekdays is None:
            return [f"{head} {days} {month} {weekdays}"]
        return [f"{head} {days} {month} *", f"{head} * {month} {weekdays}"]

    def next_after(self, at: datetime, zone: tzinfo) -> datetime | None:
        """When it is due next, after `at`, in UTC; None: not in the next years. By the clocks of that zone."""
        local = at.astimezone(zone)
        day = local.date()
        for _ in range(_YEARS * 366):
            if self._is_due_on(day.month, day.day, day.isoweekday() % 7):
                for hour in sorted(self.hours):
                    for minute in sorted(self.minutes):
                        due = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone).astimezone(UTC)
                        # A minute that the clocks leave out in spring is none.
                        exists = (due.astimezone(zone).hour, due.astimezone(zone).minute) == (hour, minute)
                        if due > at and exists:
                            return due
            day += timedelta(days=1)
        return None

    def _is_due_on(self, month: int, day: int, weekday: int) -> bool:
        if month not in self.months:
            return False
        if self.days is None or self.weekdays is None:
            return (self.days is None or day in self.days) and (self.weekdays is None or weekday in self.weekdays)
        return day in self.days or weekday in self.weekdays


def _listed(numbers: frozenset[int], all_of_them: int) -> str:
    return "*" if len(numbers) == all_of_them else ",".join(map(str, sorted(numbers)))
