"""Crons on a real host: what Temporal's schedules say, what they start when they fire, and whose they are."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from langgraph_sdk.client import LangGraphClient
from temporalio.client import Client, ScheduleBackfill, ScheduleDescription, ScheduleHandle, ScheduleOverlapPolicy
from temporalio.service import RPCError
from tests.host.http.test_flow_assistants import without_agent
from tests.host.http.test_flow_threads import unique
from tests.support.temporal import TemporalProcess
from tests.support.waiting import until

from agentvisor.core.crons import Cron
from agentvisor.core.errors import Unavailable
from agentvisor.core.owners import EVERYONE
from agentvisor.core.shelf import Change, ChangeKind, ShelfName
from agentvisor.host.crons import Crons
from agentvisor.host.shelves import ShelfDefaults, Shelves
from agentvisor.host.temporal_client import connect
from agentvisor.host.workflow.cron import run_id_of

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]

NEW_YEAR = "0 0 1 1 *"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def temporal_client(temporal: TemporalProcess) -> AsyncGenerator[Client]:
    yield await connect(temporal.address, "default")


def schedule_of(client: Client, cron_id: str) -> ScheduleHandle:
    return client.get_schedule_handle(f"agentvisor-cron:agentvisor:{cron_id}")


async def made(sdk: LangGraphClient, **fields: Any) -> dict[str, Any]:
    return dict(await sdk.crons.create("waiting", **({"schedule": NEW_YEAR, "input": {"count": 1}} | fields)))


async def is_gone(client: Client, cron_id: str) -> bool:
    try:
        await schedule_of(client, cron_id).describe()
    except RPCError:
        return True
    return False


async def test_temporals_schedule_says_what_was_asked_for(sdk: LangGraphClient, temporal_client: Client) -> None:
    end = datetime(2031, 5, 6, 7, 8, tzinfo=UTC)
    cron = await made(sdk, schedule="*/20 9-10 * * mon,FRI", timezone="Europe/Berlin", end_time=end)
    described: ScheduleDescription = await schedule_of(temporal_client, cron["cron_id"]).describe()

    schedule = described.schedule
    [calendar] = schedule.spec.calendars
    assert [(one.start, one.step) for one in calendar.minute] == [(0, 1), (20, 1), (40, 1)]
    assert [one.start for one in calendar.hour] == [9, 10]
    assert [one.start for one in calendar.day_of_week] == [1, 5]
    assert (schedule.spec.time_zone_name, schedule.spec.end_at) == ("Europe/Berlin", end)
    assert schedule.policy.overlap is ScheduleOverlapPolicy.ALLOW_ALL
    assert not schedule.state.paused
    assert described.info.next_action_times[0] == datetime.fromisoformat(cron["next_run_date"])

    changed: Any = await sdk.crons.update(cron["cron_id"], schedule="5 4 1 * 0", end_time=None, enabled=False)
    schedule = (await schedule_of(temporal_client, cron["cron_id"]).describe()).schedule
    # The first of a month or a Sunday, as cron has it: whole ranges are written out.
    assert [(one.day_of_month[0].start, one.day_of_month[0].end) for one in schedule.spec.calendars] == [
        (1, 1),
        (1, 31),
    ]
    assert [(one.day_of_week[0].start, one.day_of_week[0].end) for one in schedule.spec.calendars] == [(0, 6), (0, 0)]
    assert (schedule.spec.end_at, schedule.state.paused) == (None, True)
    assert (changed["end_time"], changed["next_run_date"], changed["timezone"]) == (None, None, "Europe/Berlin")
    await sdk.crons.delete(cron["cron_id"])
    assert await is_gone(temporal_client, cron["cron_id"])


async def test_a_cron_of_a_thread_runs_on_it_each_time(sdk: LangGraphClient, temporal_client: Client) -> None:
    thread = (await sdk.threads.create())["thread_id"]
    cron: Any = await sdk.crons.create_for_thread(
        thread, "waiting", schedule=NEW_YEAR, input={"count": 1}, metadata={"by": "cron"}
    )
    # Two New Years, each once however often they come.
    for _ in range(2):
        await schedule_of(temporal_client, cron["cron_id"]).backfill(
            ScheduleBackfill(datetime(2019, 6, 1, tzinfo=UTC), datetime(2021, 6, 1, tzinfo=UTC))
        )

    async def ended() -> bool:
        runs = await sdk.runs.list(thread)
        return [one["status"] for one in runs] == ["success"] * 2

    await until(ended, seconds=30)
    assert (await schedule_of(temporal_client, cron["cron_id"]).describe()).info.num_actions in range(2, 5)
    runs = await sdk.runs.list(thread)
    assert [one["metadata"] for one in runs] == [{"by": "cron", "cron_id": cron["cron_id"]}] * 2
    assert (await sdk.threads.get_state(thread))["values"] == {"count": 2, "log": ["worked", "waited"] * 2}


@pytest.mark.parametrize("kept", [True, False])
async def test_a_cron_without_a_thread_has_one_for_each_run(
    sdk: LangGraphClient, temporal_client: Client, *, kept: bool
) -> None:
    cron = await made(sdk, on_run_completed="keep" if kept else "delete", metadata={"mark": unique()})
    await schedule_of(temporal_client, cron["cron_id"]).trigger()
    found: list[str] = []

    async def fired() -> bool:
        described = await schedule_of(temporal_client, cron["cron_id"]).describe()
        found[:] = [one.action.workflow_id for one in described.info.recent_actions]
        return bool(found)

    await until(fired, seconds=30)
    outcome = await temporal_client.get_workflow_handle(found[0]).result()
    run = run_id_of(found[0])
    assert outcome.startswith("started")
    ended: Any = await sdk.runs.join(run, run)
    assert ended == {"count": 2, "log": ["worked", "waited"]}
    ttl = (await sdk.threads.get(run, include=["ttl"]))["ttl"]  # type: ignore[typeddict-item]
    assert (ttl is None) == kept
    await sdk.crons.delete(cron["cron_id"])


async def test_what_is_wrong_is_said_and_nothing_is_made(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    before = await sdk.crons.count()
    for fields, says in (
        ({"schedule": "now and then"}, "has 3 fields"),
        ({"schedule": "* * * * * *"}, "has 6 fields"),
        ({"schedule": "@every 5m"}, "has 2 fields"),
        ({"schedule": "60 * * * *"}, "minute '60'"),
        ({"schedule": "0 0 31 2 *"}, "no such month"),
        ({"timezone": "Europe/Nowhere"}, "IANA"),
        ({"timezone": ""}, "timezone"),
        ({"after_seconds": 5}, "after_seconds is for one run"),
        ({"webhook": "http://127.0.0.1/"}, "webhook"),
        ({"assistant_id": "nope"}, "no agent"),
        ({"feedback_keys": ["a"]}, "feedback_keys"),
    ):
        refused = await http.post("/runs/crons", json={"assistant_id": "waiting", "schedule": NEW_YEAR, **fields})
        assert refused.status_code == 422, (fields, refused.text)
        assert says in refused.text or fields.get("assistant_id"), (fields, refused.text)
    missing = await http.post(f"/threads/{uuid4()}/runs/crons", json={"assistant_id": "waiting", "schedule": NEW_YEAR})
    assert missing.status_code == 404
    assert (await http.patch(f"/runs/crons/{uuid4()}", json={"enabled": False})).status_code == 404
    assert await sdk.crons.count() == before


async def test_a_cron_is_switched_off_whatever_has_become_of_its_agent(
    sdk: LangGraphClient, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    cron = (await made(sdk))["cron_id"]
    without_agent(monkeypatch, "waiting")
    assert (await http.patch(f"/runs/crons/{cron}", json={"enabled": True})).status_code == 422
    switched = await http.patch(f"/runs/crons/{cron}", json={"enabled": False})
    assert (switched.status_code, switched.json()["enabled"]) == (200, False), switched.text
    await sdk.crons.delete(cron)


async def test_a_page_of_a_search(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    mark = {"mark": unique()}
    for day in ("3", "1", "2"):
        await made(sdk, schedule=f"0 0 {day} 1 *", metadata=mark)
    body = {"metadata": mark, "limit": 2, "sort_by": "next_run_date", "sort_order": "asc", "select": ["schedule"]}
    page = await http.post("/runs/crons/search", json=body)
    assert page.json() == [{"schedule": "0 0 1 1 *"}, {"schedule": "0 0 2 1 *"}]
    assert (page.headers["x-pagination-total"], page.headers["x-pagination-next"]) == ("3", "2")
    assert (await http.post("/runs/crons/count", json={"metadata": mark, "enabled": False})).json() == 0
    for one in await sdk.crons.search(metadata=mark):
        await sdk.crons.delete(one["cron_id"])


async def test_a_threads_crons_go_with_it(sdk: LangGraphClient, temporal_client: Client) -> None:
    thread = (await sdk.threads.create())["thread_id"]
    canary = f"canary-{unique()}"
    cron: Any = await sdk.crons.create_for_thread(thread, "waiting", schedule=NEW_YEAR, input={"text": canary})
    await sdk.threads.delete(thread)
    assert await sdk.crons.search(thread_id=thread) == []
    assert await is_gone(temporal_client, cron["cron_id"])


async def test_a_schedule_whose_cron_is_gone_ends_itself(sdk: LangGraphClient, temporal_client: Client) -> None:
    cron = await made(sdk)
    # As a host leaves it that is killed between the two.
    shelves = Shelves(temporal_client, ShelfDefaults("agentvisor"))
    await shelves.change(ShelfName("crons", "", ()), [Change(ChangeKind.REMOVE, cron["cron_id"])])
    crons = another_host(temporal_client)
    assert not await crons.end_stray(cron["cron_id"], timedelta(minutes=1))
    assert await crons.end_stray(cron["cron_id"], timedelta(0))
    assert await is_gone(temporal_client, cron["cron_id"])


# --- a host that dies between a cron and its schedule ---------------------------------------------------------------


class Died(Exception):
    """In the place of a host that is gone at this point."""


async def die(*_: object, **__: object) -> None:
    raise Died


def another_host(client: Client) -> Crons:
    """What a host of the same deployment has, which has read nothing yet."""
    return Crons(client, Shelves(client, ShelfDefaults("agentvisor")), "agentvisor")


async def months(client: Client, cron_id: str) -> list[int]:
    """In which a schedule fires."""
    schedule = (await schedule_of(client, cron_id).describe()).schedule
    return [one.month[0].start for one in schedule.spec.calendars]


def in_may(cron: Cron) -> Cron:
    return replace(cron, schedule="0 0 1 5 *")


async def updated_by_a_host_that_dies(client: Client, cron_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = another_host(client)
    monkeypatch.setattr(dying._schedules, "rewrite", die)
    with pytest.raises(Died):
        await dying.update(EVERYONE, cron_id, in_may)
    assert await months(client, cron_id) == [1], "it was to die before that"


@pytest.mark.parametrize("how", ["read", "search", "update", "start"])
async def test_a_changed_cron_is_due_at_its_new_time_though_its_host_died_before_its_schedule_was_changed(
    sdk: LangGraphClient, temporal_client: Client, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    cron_id = (await made(sdk))["cron_id"]
    await sdk.crons.search()  # this host has seen that all was well
    await updated_by_a_host_that_dies(temporal_client, cron_id, monkeypatch)
    if how == "read":
        assert (await another_host(temporal_client).find(EVERYONE, cron_id)).schedule == "0 0 1 5 *"
    elif how == "search":
        assert cron_id in [one["cron_id"] for one in await sdk.crons.search(limit=1000)]
    elif how == "update":
        await sdk.crons.update(cron_id, schedule="0 0 1 5 *")  # as a client does that got no answer
    else:
        await until_listed(temporal_client, cron_id)
        await another_host(temporal_client).repair()
    assert await months(temporal_client, cron_id) == [5]
    await sdk.crons.delete(cron_id)


async def until_listed(client: Client, cron_id: str) -> None:
    """Temporal's lists lag."""

    async def listed() -> bool:
        return any([one.id.endswith(cron_id) async for one in await client.list_schedules()])

    await until(listed, seconds=30)


async def test_of_two_changes_at_a_time_the_one_that_is_kept_is_fired(
    sdk: LangGraphClient, temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    cron_id = (await made(sdk))["cron_id"]
    slow = another_host(temporal_client)
    rewrite = slow._schedules.rewrite

    async def after_another(cron: Cron) -> None:
        if cron.schedule == "0 0 1 5 *":
            await sdk.crons.update(cron_id, schedule="0 0 1 7 *")
        await rewrite(cron)

    monkeypatch.setattr(slow._schedules, "rewrite", after_another)
    await slow.update(EVERYONE, cron_id, in_may)
    assert (await sdk.crons.search(limit=1000, sort_by="updated_at"))[0]["schedule"] == "0 0 1 7 *"
    assert await months(temporal_client, cron_id) == [7]
    await sdk.crons.delete(cron_id)


@pytest.mark.parametrize("how", ["delete again", "start"])
async def test_a_deleted_crons_schedule_goes_though_its_host_died_before_it_was_ended(
    sdk: LangGraphClient, http: httpx.AsyncClient, temporal_client: Client, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr("agentvisor.host.crons._BEGINS", timedelta(0))
    cron_id = (await made(sdk))["cron_id"]
    dying = another_host(temporal_client)
    monkeypatch.setattr(dying._schedules, "end", die)
    with pytest.raises(Died):
        await dying.delete(EVERYONE, cron_id)
    assert not await is_gone(temporal_client, cron_id), "it was to die before that"
    if how == "start":
        await until_listed(temporal_client, cron_id)
        await another_host(temporal_client).repair(timedelta(0))
    else:
        assert (await http.delete(f"/runs/crons/{cron_id}")).status_code == 404
    assert await is_gone(temporal_client, cron_id)


async def test_a_schedule_whose_cron_never_came_goes_once_it_cannot_come_any_more(
    temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying = another_host(temporal_client)
    monkeypatch.setattr(dying._shelves, "change", die)
    cron = Cron(str(uuid4()), "", "a", None, NEW_YEAR)
    with pytest.raises(Died):
        await dying.create(cron)
    await until_listed(temporal_client, cron.cron_id)
    assert not await another_host(temporal_client).end_stray(cron.cron_id)
    await another_host(temporal_client).repair(timedelta(0))
    assert await is_gone(temporal_client, cron.cron_id)


async def test_a_deployment_whose_name_begins_with_ours_keeps_its_schedules(temporal_client: Client) -> None:
    theirs = Crons(temporal_client, Shelves(temporal_client, ShelfDefaults("agentvisor:b")), "agentvisor:b")
    cron = Cron(str(uuid4()), "", "a", None, NEW_YEAR)
    await theirs._schedules.create(cron)
    named = f"b:{cron.cron_id}"
    await until_listed(temporal_client, named)
    await another_host(temporal_client).repair(timedelta(0))
    assert await another_host(temporal_client).end_stray(named, timedelta(0)), "there is no such thing here"
    assert not await is_gone(temporal_client, named)
    await theirs._schedules.end(cron.cron_id)


async def test_a_cron_is_fired_also_where_nobody_could_say_that_it_was_kept(
    sdk: LangGraphClient, temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = another_host(temporal_client)
    change = host._shelves.change

    async def unheard(*args: Any) -> None:
        await change(*args)
        raise Unavailable("the answer was lost")

    monkeypatch.setattr(host._shelves, "change", unheard)
    cron = Cron(str(uuid4()), "", "a", None, NEW_YEAR)
    with pytest.raises(Unavailable):
        await host.create(cron)
    assert cron.cron_id in [one["cron_id"] for one in await sdk.crons.search(limit=1000)]
    assert await months(temporal_client, cron.cron_id) == [1]
    await sdk.crons.delete(cron.cron_id)


@pytest.mark.parametrize("how", ["read", "start"])
async def test_a_cron_without_a_schedule_gets_one(sdk: LangGraphClient, temporal_client: Client, how: str) -> None:
    cron_id = (await made(sdk))["cron_id"]
    await schedule_of(temporal_client, cron_id).delete()
    host = another_host(temporal_client)
    await (host.find(EVERYONE, cron_id) if how == "read" else host.repair())
    assert await months(temporal_client, cron_id) == [1]
    await sdk.crons.delete(cron_id)
