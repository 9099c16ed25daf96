"""A thread's events are followed on any host, over the loss of one too: nothing comes twice, what is lost is said."""

import asyncio
from pathlib import Path

import httpx
import pytest
from tests.flow.conftest import Project
from tests.host.http.events.reading import Frame, command, events, is_root, shown, started, subscribed, up_to
from tests.host.http.test_flow_threads import unique
from tests.support.host_process import HostProcess
from tests.support.waiting import until

pytestmark = pytest.mark.flow

NAMES = {"tools": "slow_tools.py:graph", "counts": "plain.py:counts"}


@pytest.fixture
def project(zygote_project: Project) -> Project:
    zygote_project.names = NAMES
    return zygote_project


async def hosts(project: Project, count: int) -> list[HostProcess]:
    # Started from the main thread, whose death ends them.
    new = [project.new_host(FOLDER=str(project.folder)).launch() for _ in range(count)]
    return [one.ready() for one in new]


def client(host: HostProcess) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=host.url, timeout=30)


async def began(project: Project) -> None:
    await until(lambda: project.did()["began slow"] > 0)


@pytest.mark.slow
async def test_who_waits_on_one_host_follows_a_run_that_another_was_asked_for(project: Project) -> None:
    one, other = await hosts(project, 2)
    thread = unique()
    async with client(one) as here, client(other) as there, subscribed(here, thread, ["lifecycle", "values"]) as frames:
        run_id = await started(there, thread, "tools", input={"done": []})
        await began(project)
        (project.folder / f"{thread}.gate").touch()
        found = await up_to(frames, is_root("interrupted", run_id))
        assert set(shown(found, "values")[-1][1]["done"]) == {"one", "slow", "two"}
        # The run has one end, whoever tells it.
        assert (await events(there, thread, is_root("interrupted", run_id), ["lifecycle"]))[-1] == found[-1]
        # Any host takes the answer, and this one hears of what follows.
        [waiting] = (await there.get(f"/threads/{thread}/interrupts")).json()
        reply = await command(there, thread, "input.respond", interrupt_id=waiting["id"], response="yes")
        assert reply["meta"]["applied_through_seq"] == found[-1]["seq"]
        rest = await up_to(frames, is_root("completed"))
        assert rest[0]["seq"] > found[-1]["seq"]
        assert shown(rest, "values")[-1][1]["answer"] == "yes"


async def test_a_client_goes_on_over_the_loss_of_the_only_host(project: Project) -> None:
    [host] = await hosts(project, 1)
    thread, seen = unique(), list[Frame]()
    async with client(host) as http:
        run_id = await started(http, thread, "tools", input={"done": []})
        await began(project)
        async with subscribed(http, thread) as frames:
            seen += await up_to(frames, lambda frame: frame["method"] == "tasks")
        host.kill()
    project.forget()
    [again] = await hosts(project, 1)
    async with client(again) as http:
        async with subscribed(http, thread, since=seen[-1]["seq"]) as frames:
            await began(project)
            (project.folder / f"{thread}.gate").touch()
            gap, *rest = await up_to(frames, is_root("interrupted", run_id))
        assert (gap["type"], gap["error"], gap["since"]) == ("error", "resume_gap", seen[-1]["seq"])
        numbers = [one["seq"] for one in (*seen, *rest)]
        assert numbers == sorted(set(numbers))
        assert len({one["event_id"] for one in (*seen, *rest)}) == len(numbers)
        running = [data["attempt"] for _, data in shown(rest, "lifecycle") if data["event"] == "running"]
        assert running == [2]
        assert set(shown(rest, "values")[-1][1]["done"]) == {"one", "slow", "two"}
        assert len(shown(rest, "input.requested")) == 1


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "idle"])
async def test_what_a_host_that_is_gone_has_told_is_told_by_its_end(
    project: Project, tmp_path: Path, *, ended: bool
) -> None:
    [host] = await hosts(project, 1)
    thread = unique()
    async with client(host) as http:
        await started(http, thread, "counts", input=3)
        whole = await events(http, thread, is_root("completed"))
        host.kill()
    [again] = await hosts(project, 1)
    async with client(again) as http:
        if ended:
            found = await events(http, thread, is_root("completed"))
            assert [one["method"] for one in found] == ["lifecycle", "values", "lifecycle"]
            assert found[-1] == whole[-1]
            return
        # Who has seen the end waits for what comes.
        async with subscribed(http, thread, since=whole[-1]["seq"]) as frames:
            run_id = await started(http, thread, "counts", input=1)
            rest = await up_to(frames, is_root("completed", run_id))
        assert rest[0]["event_id"] == f"synth:{run_id}:lc||running"
        assert rest[0]["seq"] > whole[-1]["seq"]


async def test_a_hundred_idle_subscribers_ask_temporal_together(project: Project) -> None:
    one, other = await hosts(project, 2)
    threads = [unique() for _ in range(100)]
    async with client(one) as here, client(other) as there:
        reading = [asyncio.create_task(_first(here, thread)) for thread in threads]
        await started(there, threads[-1], "counts", input=1)
        found = await asyncio.wait_for(reading[-1], 30)
        assert found["params"]["data"]["event"] == "running"
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)


async def _first(http: httpx.AsyncClient, thread: str) -> Frame:
    async with subscribed(http, thread) as frames:
        return await anext(aiter(frames))
