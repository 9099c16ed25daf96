"""Schedules of five fields: what is refused, and when they are due."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from agentvisor.core.cron_schedule import CronSchedule
from agentvisor.core.errors import InvalidInput

AT = datetime(2024, 2, 28, 12, 30, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    "text",
    [
        "", "* * * *", "* * * * * *", "@every 5m", "@daily", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *",
        "* * * * 8", "5-1 * * * *", "*/0 * * * *", "*/ * * * *", "1, * * * *", "-1 * * * *", "a * * * *", "0 0 30 2 *",
        "\u0665 * * * *", "* * * * mon-", "0 0 31 4,6 *", "1/x * * * *", "9999999999 * * * *", "* " * 200,
    ],
)  # fmt: skip
def test_what_is_no_schedule_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInput, match="schedule"):
        CronSchedule.parse(text)


@pytest.mark.parametrize(
    "text, due",
    [
        ("* * * * *", "2024-02-28T12:31"),
        ("*/20 * * * *", "2024-02-28T12:40"),
        ("30 12 * * *", "2024-02-29T12:30"),
        ("0 0 29 2 *", "2024-02-29T00:00"),
        ("0 0 29 2 mon", "2024-02-29T00:00"),  # either day will do
        ("0 9 * * 7", "2024-03-03T09:00"),
        ("0 9 * * sat,SUN", "2024-03-02T09:00"),
        ("15 1-3/2 1 jan-MAR *", "2024-03-01T01:15"),
        ("5/25 13 * * *", "2024-02-28T13:05"),
    ],
)
def test_it_is_due_next_at_the_first_minute_that_fits(text: str, due: str) -> None:
    found = CronSchedule.parse(text).next_after(AT, UTC)
    assert found == datetime.fromisoformat(f"{due}:00+00:00")


def test_it_goes_by_the_clocks_of_its_zone() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    before_spring = datetime(2024, 3, 30, 12, 0, tzinfo=UTC)
    nine = CronSchedule.parse("0 9 * * *")
    assert nine.next_after(before_spring, berlin) == datetime(2024, 3, 31, 7, 0, tzinfo=UTC)
    # 02:30 does not exist on the 31st.
    assert CronSchedule.parse("30 2 * * *").next_after(before_spring, berlin) == datetime(2024, 4, 1, 0, 30, tzinfo=UTC)


def test_temporal_is_told_both_days_apart() -> None:
    assert CronSchedule.parse("0 0 1 * sun").expressions() == ["0 0 1 * *", "0 0 * * 0"]
    assert CronSchedule.parse("*/30 * * * *").expressions() == ["0,30 * * * *"]
