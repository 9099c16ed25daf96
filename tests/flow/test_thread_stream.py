"""One stream of a thread tells of all its runs in order, on any host, and goes on after any event of any of them."""

from collections.abc import Generator

import httpx
import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread
from tests.flow.serving import deployment
from tests.flow.streaming import Reading, Told, increasing, reading
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until

pytestmark = [pytest.mark.flow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[tuple[VictimThread, list[HostProcess]]]:
    project = Project(tmp_path_factory.mktemp("thread-stream"), temporal, "zygote")
    with deployment(project) as of:
        yield of.thread(), of.hosts


def path_of(thread: VictimThread) -> str:
    return f"/threads/{thread.id}/stream"


def until_done(one: Reading, count: int) -> None:
    until(lambda: len(done(one)) >= count or one.ended, seconds=30)
    assert len(done(one)) == count, one.told[-3:]


def done(one: Reading) -> list[Told]:
    return [told for told in one.told if told.event == "metadata" and told.data.get("status") == "run_done"]


def test_runs_are_told_one_after_the_other_on_every_host(hosts: tuple[VictimThread, list[HostProcess]]) -> None:
    thread, (here, there) = hosts
    with reading(here, path_of(thread)) as near, reading(there, path_of(thread)) as far:
        until(lambda: near.status and far.status)
        given = {"wanted": 2, "each": 2}
        first = thread.graph("ticking", given, stream_mode="custom")
        second = thread.graph("ticking", given, stream_mode=["updates", "custom"], multitask_strategy="enqueue")
        until_done(near, 2)
        third = thread.graph("ticking", given, stream_mode="custom")
        until_done(near, 3)
        until_done(far, 3)
        assert near.told == far.told
    assert increasing(near)
    began = [told.data["run_id"] for told in near.told if told.event == "metadata" and "attempt" in told.data]
    assert began == [told.data["run_id"] for told in done(near)] == [first, second, third]
    names = [told.event for told in near.told]
    assert names[:6] == ["metadata", *["custom"] * 4, "metadata"]
    assert "updates" in names[6:]
    # After any of them, on either host.
    whole = list(near.told)
    for at in (0, 2, 5, 6, 9, len(whole) - 2, len(whole) - 1):
        with reading(there, path_of(thread), after=whole[at].id) as rest:
            until(lambda at=at, rest=rest: len(rest.told) >= len(whole) - at - 1 and rest.status)
            assert rest.told == whole[at + 1 :]
    with reading(here, path_of(thread), after="-") as replayed:
        until(lambda: len(replayed.told) >= len(whole))
        assert replayed.told == whole


def test_who_asks_for_lifecycle_hears_of_begins_and_ends_only(hosts: tuple[VictimThread, list[HostProcess]]) -> None:
    _, (here, there) = hosts
    thread = VictimThread(hosts[0].project, here)
    with reading(there, path_of(thread), stream_modes="lifecycle,state_update") as one:
        until(lambda: one.status)
        run = thread.graph("ticking", {"wanted": 1})
        until_done(one, 1)
    assert [told.data for told in one.told] == [
        {"run_id": run, "attempt": 1},
        {"status": "run_done", "run_id": run},
    ]


def test_what_is_no_event_of_a_thread_is_refused(hosts: tuple[VictimThread, list[HostProcess]]) -> None:
    thread, (here, _) = hosts
    place = f"{here.url}{path_of(thread)}"
    for malformed in ("-1", "abc", "1-", "9" * 40):
        refused = httpx.get(place, headers={"Last-Event-ID": malformed})
        assert refused.status_code == 422
        assert "Last-Event-ID" in refused.json()["detail"]
    refused = httpx.get(place, params={"stream_mode": "values"})
    assert refused.status_code == 422
    assert "run_modes, lifecycle, state_update" in refused.json()["detail"]
    assert httpx.get(f"{here.url}/threads/unknown/stream").status_code == 404


def test_the_stream_ends_with_its_thread(hosts: tuple[VictimThread, list[HostProcess]]) -> None:
    _, (here, there) = hosts
    thread = VictimThread(hosts[0].project, here)
    one = Reading(there, path_of(thread))
    until(lambda: one.status)
    thread.client.threads.delete(thread.id)
    one.to_its_end()
    assert [told.event for told in one.told] == ["error"]
    assert one.told[0].data["error"] == "NotFound"
