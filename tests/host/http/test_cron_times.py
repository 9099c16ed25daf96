"""A cron's end is a moment that the calendar has, wherever it was written."""

from datetime import UTC, datetime

import httpx
import pytest

from agentvisor.host.http.bodies_crons import CronCreate, CronPatch, at_ms


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
async def test_an_end_that_utc_does_not_have_is_refused(api: httpx.AsyncClient, time: str) -> None:
    body = {"assistant_id": "plain", "schedule": "0 9 * * *", "end_time": time}
    for method, path in (("POST", "/runs/crons"), ("POST", "/threads/t/runs/crons"), ("PATCH", "/runs/crons/c")):
        refused = await api.request(method, path, json=body)
        assert refused.status_code == 422
        assert "end_time" in refused.json()["detail"]


@pytest.mark.parametrize(
    "time, moment",
    [
        ("2026-12-01T10:00:00", datetime(2026, 12, 1, 10, tzinfo=UTC)),
        ("2026-12-01T10:00:00+02:00", datetime(2026, 12, 1, 8, tzinfo=UTC)),
        ("9999-12-31T23:59:59Z", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_an_end_without_a_zone_is_of_utc(time: str, moment: datetime) -> None:
    for body in (CronCreate, CronPatch):
        given = body.model_validate({"assistant_id": "a", "schedule": "0 9 * * *", "end_time": time})
        assert at_ms(given.end_time) == int(moment.timestamp() * 1000)
