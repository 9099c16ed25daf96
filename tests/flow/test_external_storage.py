"""External storage with real hosts, real agents, a real S3 API, and real kills."""

import asyncio
import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import httpx
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from temporalio.client import Client
from temporalio.service import RPCError
from tests.flow.conftest import Project, client_of
from tests.support.host_process import HostProcess
from tests.support.large import noise
from tests.support.object_store import S3, Mood, s3_server
from tests.support.proxy import proxy_to
from tests.support.waiting import until as until_async
from tests.support.waiting_sync import until

from agentvisor.host.external.obstore_backend import MARKER
from agentvisor.langgraph import AgentVisorCheckpointer

pytestmark = pytest.mark.flow

DELETED = "DeleteWorkflowExecution"
MB = 1_000_000
# Of noise in 64 letters, zstd leaves three quarters.
STORED = 4 / 3


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[HostProcess]:
    """A host that keeps little in Temporal."""
    folder = tmp_path_factory.mktemp("shared")
    project = Project(folder, temporal, "zygote", {"large": "large_values.py:graph"})
    stored_in(project, f"file://{folder}/values", {})
    host = project.host({"AGENTVISOR_STORAGE_MAX_INLINE_VALUE": "100000"})
    yield host
    host.stop()


@pytest.fixture(scope="module")
def s3_module(tmp_path_factory: pytest.TempPathFactory) -> Generator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3")) as store:
        yield store


@pytest.fixture
def s3(s3_module: S3) -> Generator[S3]:
    s3_module.front.set(Mood.FINE)
    s3_module.empty()
    yield s3_module
    s3_module.front.set(Mood.FINE)


@pytest.fixture
def project(tmp_path: Path, temporal: str) -> Generator[Project]:
    project = Project(tmp_path, temporal, "zygote", {"large": "large_values.py:graph"})
    yield project
    for host in project.hosts:
        host.stop()


def stored_in(project: Project, url: str, options: dict[str, str], retry_for: str = "20s") -> None:
    storage = {"url": url, "options": options, "retry_for": retry_for}
    project._settings += f"storage: {json.dumps(storage)}\n"


def run(host: HostProcess, thread: str, sizes: dict[str, float], **more: object) -> dict[str, object]:
    """Start a run and wait for its end; the run as it is recorded."""
    client = client_of(host)
    given = {"sizes": {name: int(size) for name, size in sizes.items()}, **more}
    started = client.runs.create(thread, "large", input=given, if_not_exists="create")
    client.runs.join(thread, started["run_id"])
    return httpx.get(f"{host.url}/threads/{thread}/runs/{started['run_id']}", timeout=60).json()


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param({"a": 1.9 * MB * STORED}, marks=pytest.mark.slow),
        {"a": 2.1 * MB * STORED},
        pytest.param({"a": 5 * MB}, marks=pytest.mark.slow),
        {"a": 0.9 * MB * STORED, "b": 0.9 * MB * STORED, "c": 0.9 * MB * STORED},
        pytest.param({"a": 50 * MB}, marks=pytest.mark.slow),
    ],
    ids=lambda sizes: "+".join(f"{size / MB:.1f}" for size in sizes.values()),
)
@pytest.mark.parametrize("kind", ["s3", pytest.param("file", marks=pytest.mark.slow)])
def test_a_graph_of_large_values_runs_once_and_its_state_is_shown(
    project: Project, s3: S3, tmp_path: Path, sizes: dict[str, float], kind: str
) -> None:
    folder = tmp_path / "values"
    stored_in(project, s3.url if kind == "s3" else f"file://{folder}", s3.options if kind == "s3" else {})
    host, thread = project.host(), str(uuid4())
    ended = run(host, thread, sizes)
    assert ended["status"] == "success", json.dumps(ended)[:2000]
    assert host.log.read_text().count("agent_started") == 1
    client = client_of(host)
    values = client.threads.get_state(thread)["values"]
    assert {name: len(values[name]) for name in sizes} == {name: int(size) for name, size in sizes.items()}
    assert values["done"] is True
    history = client.threads.get_history(thread, limit=2)
    assert [state["values"].get("done") for state in history] == [True, None]
    keys = s3.keys() if kind == "s3" else [path for path in folder.rglob("*") if path.is_file() and path.name != MARKER]
    assert keys
    client.threads.delete(thread)
    until(lambda: not (s3.keys() if kind == "s3" else [path for path in folder.rglob("*") if path.name != MARKER]))


def test_without_external_storage_the_agent_sees_what_is_too_large_and_how_to_lift_it(project: Project) -> None:
    host = project.host()
    ended = run(host, str(uuid4()), {"a": 2.1 * MB})
    assert ended["status"] == "error"
    told = json.dumps(ended)
    for part in ("ValueTooLarge", "channel 'a'", "storage.max_inline_value", "storage.url"):
        assert part in told


def test_a_run_outlives_a_store_that_is_away_for_a_while(project: Project, s3: S3) -> None:
    stored_in(project, s3.url, s3.options)
    host, thread = project.host(), str(uuid4())
    client = client_of(host)
    s3.front.set(Mood.GONE)
    given = {"sizes": {"a": 3 * MB}}
    started = client.runs.create(thread, "large", input=given, if_not_exists="create")
    log = host.log
    until(lambda: log.read_text().count("storage_again") >= 3, seconds=30)
    s3.front.set(Mood.FINE)
    client.runs.join(thread, started["run_id"])
    assert client.runs.get(thread, started["run_id"])["status"] == "success"
    assert log.read_text().count("agent_started") == 1


def test_a_host_killed_between_the_object_and_the_log_leaves_nothing_behind(project: Project, s3: S3) -> None:
    stored_in(project, s3.url, s3.options)
    host, thread = project.host(), str(uuid4())
    s3.front.set(Mood.SWALLOWING)
    client = client_of(host)
    started = client.runs.create(thread, "large", input={"sizes": {"a": 3 * MB}}, if_not_exists="create")
    until(lambda: len(s3.keys()) >= 1, seconds=30)
    orphans = set(s3.keys())
    host.kill()
    s3.front.set(Mood.FINE)
    host = project.host()
    client = client_of(host)
    client.runs.join(thread, started["run_id"])
    assert client.runs.get(thread, started["run_id"])["status"] == "success"
    assert client.threads.get_state(thread)["values"]["done"] is True
    until(lambda: not orphans & set(s3.keys()), seconds=20)
    assert s3.keys()


def test_a_delete_whose_host_was_killed_in_the_middle_is_finished_by_the_next(project: Project, s3: S3) -> None:
    stored_in(project, s3.url, s3.options)
    host, thread = project.host(), str(uuid4())
    assert run(host, thread, {"a": 3 * MB, "b": 4 * MB})["status"] == "success"
    there = len(s3.keys())
    assert there >= 2
    s3.front.set(Mood.HANGING)
    came = s3.front.connections
    with httpx.Client() as client, pytest.raises(httpx.ReadTimeout):
        client.delete(f"{host.url}/threads/{thread}", timeout=1.0)
    assert s3.front.connections > came
    host.kill()
    s3.front.set(Mood.FINE)
    host = project.host()
    assert httpx.get(f"{host.url}/threads/{thread}", timeout=20).status_code == 404
    assert httpx.delete(f"{host.url}/threads/{thread}", timeout=20).status_code == 204
    assert s3.keys() == []
    assert run(host, thread, {"a": 2 * MB})["status"] == "success"  # the id is usable


@pytest.mark.parametrize("place", [pytest.param("objects", marks=pytest.mark.slow), "executions"])
async def test_a_thread_goes_whole_though_its_host_was_killed_in_the_middle_of_its_expiry(
    project: Project, s3: S3, temporal: str, place: str
) -> None:
    stored_in(project, s3.url, s3.options)
    thread = str(uuid4())
    async with proxy_to(temporal) as proxy:
        project.temporal = proxy.address
        host = await asyncio.to_thread(project.host)
        assert (await asyncio.to_thread(run, host, thread, {"a": 3 * MB, "b": 4 * MB}))["status"] == "success"
        client = await Client.connect(temporal)
        first, second = await continued(client, thread)
        rule = proxy.refuse(DELETED, matches=lambda request: second.encode() in request)
        if place == "objects":
            s3.front.set(Mood.DELETING)
        now = {"ttl": {"ttl": 0.5 / 60, "strategy": "delete"}}
        (await asyncio.to_thread(httpx.patch, f"{host.url}/threads/{thread}", json=now)).raise_for_status()

        # The objects are gone, and nobody is told; or so is the older execution, and the one that asks is not.
        await until_async(lambda: not s3.keys(), seconds=30)
        if place == "executions":
            await rule.until_caught(seconds=30)
            await until_async(lambda: is_erased(client, thread, first), seconds=60)
        assert not await is_erased(client, thread, second)
        host.kill()
        s3.front.set(Mood.FINE)
        proxy.mend()

        host = await asyncio.to_thread(project.host)
        for execution in (first, second, ""):
            await until_async(lambda execution=execution: is_erased(client, thread, execution), seconds=60)
        assert (await asyncio.to_thread(httpx.get, f"{host.url}/threads/{thread}")).status_code == 404
        assert s3.keys() == []
        # Its id is as that of a thread that never was.
        assert (await asyncio.to_thread(run, host, thread, {"a": 2 * MB}))["status"] == "success"
        assert len(await asyncio.to_thread(client_of(host).runs.list, thread)) == 1
        await asyncio.to_thread(host.stop)


async def continued(client: Client, thread: str) -> tuple[str, str]:
    """The thread continues as new; the executions before and after that."""
    handle = client.get_workflow_handle(thread)
    first = (await handle.describe()).run_id
    await handle.execute_update("compact", b"", result_type=bytes)

    async def second() -> str:
        now = (await handle.describe()).run_id
        return "" if now == first else now

    await until_async(second)
    return first, await second()


async def is_erased(client: Client, thread: str, execution: str) -> bool:
    try:
        await client.get_workflow_handle(thread, run_id=execution or None).describe()
    except RPCError:
        return True
    return False


def test_a_notebook_outside_any_guest_stores_and_reads_large_values(
    project: Project,
    s3: S3,
) -> None:
    stored_in(project, s3.url, s3.options)
    host, thread = project.host(), str(uuid4())
    saver = AgentVisorCheckpointer(endpoint=host.url)
    config: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    value = noise(5 * MB)
    checkpoint = empty_checkpoint() | {"channel_values": {"big": value}, "channel_versions": {"big": "1"}}
    stored = saver.put(config, cast("Checkpoint", checkpoint), {"source": "input", "step": -1}, {"big": "1"})
    saver.put_writes(stored, [("big", noise(3 * MB, "next")), ("small", 1)], "task")
    found = AgentVisorCheckpointer(endpoint=host.url).get_tuple(stored)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"big": value}
    assert found.pending_writes == [("task", "big", noise(3 * MB, "next")), ("task", "small", 1)]
    assert len(s3.keys()) == 2
    # Once the log is folded.
    until(lambda: httpx.get(f"{host.url}/threads/{thread}/storage", timeout=20).json()["external"]["count"] == 2)
    saver.delete_thread(thread)
    assert s3.keys() == []


@pytest.mark.parametrize("size", [50_000, 99_990, 100_000, 300_000, 900_000, 1_040_000, 1_400_000, 2_500_000])
def test_a_write_over_the_inline_limit_goes_to_the_store_whatever_kind_it_is(shared: HostProcess, size: int) -> None:
    saver = AgentVisorCheckpointer(endpoint=shared.url)
    delta: Any = DeltaChannel(lambda old, new: [*old, *new], list)
    delta.key = "items"
    delta.from_checkpoint(None)  # as LangGraph does, when a graph with such a channel begins
    config: RunnableConfig = {"configurable": {"thread_id": str(uuid4()), "checkpoint_ns": ""}}
    stored = saver.put(config, empty_checkpoint(), {}, {})
    written = {channel: os.urandom(size) for channel in ("regular", "__interrupt__", "items")}
    for channel, value in written.items():
        saver.put_writes(stored, [(channel, value)], f"task of {channel}")
    found = saver.get_tuple(config)
    assert found is not None
    assert {channel: value for _, channel, value in found.pending_writes or ()} == written
