"""Every metric of the table moves when what it counts happens: on real hosts, by real runs, read at /metrics."""

import asyncio
import re
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import httpx
import psutil
import pytest
from prometheus_client import REGISTRY
from temporalio.client import Client, ScheduleBackfill
from tests.flow.conftest import Project
from tests.flow.metered import MOVED, Metered, moves
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import Knobs, engine_host, new_thread
from tests.support.scene import make_compaction_due, until_compacted
from tests.support.temporal import TemporalProcess, temporal_server
from tests.support.waiting_sync import until
from tests.support.webhooks import receiving
from tests.support.writing import put

from agentvisor import __version__
from agentvisor.host.metrics import TABLE

pytestmark = pytest.mark.flow

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"calls": "calls.py:call", "graph": "graphs.py:make"}
KEY = "an-operator-key-of-some-length"
KEYED = {"Authorization": f"Bearer {KEY}"}

ELSEWHERE = {
    "agentvisor_dropped_writes_total": (
        "tests/flow/test_limits.py",
        "test_regular_writes_over_the_limit_are_dropped_and_counted",
    ),
    "agentvisor_failed_threads_total": (
        "tests/flow/test_thread_failed.py",
        "test_a_thread_that_cannot_fit_says_so_and_is_still_read_and_deleted",
    ),
    "agentvisor_interrupts_expired_total": (
        "tests/flow/test_deadlines.py",
        "test_a_default_answer_for_which_there_is_no_room_says_so_and_what_is_overdue_is_counted",
    ),
    "agentvisor_refused_payloads_total": (
        "tests/flow/test_encryption_faults.py",
        "test_a_payload_of_another_thread_or_a_cut_one_costs_itself_and_neither_thread",
    ),
}
"""Metrics that a test of something else shows to move."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[Metered]:
    """One host for all that harms none, with external storage."""
    folder = tmp_path_factory.mktemp("metered")
    project = Project(folder, temporal, "zygote", NAMES)
    (folder / "objects").mkdir()
    host = project.host(
        {
            "AGENTVISOR_STORAGE_URL": (folder / "objects").as_uri(),
            "AGENTVISOR_HTTP_WEBHOOK_ALLOW_PRIVATE": "true",
            "AGENTVISOR_TEMPORAL_COMPACT_EVENTS": "200",
        }
    )
    try:
        yield Metered(project, host)
    finally:
        host.stop()


class Lonely:
    """A host on a Temporal of its own, which may be killed; it needs a key."""

    def __init__(self, project: Project, temporal: TemporalProcess) -> None:
        self.temporal = temporal
        given = {"AGENTVISOR_HTTP_OPERATOR_KEY": KEY, "AGENTVISOR_STORAGE_MAX_STATE": "200000"}
        self.metered = Metered(project, project.host(given), KEYED)


@pytest.fixture(scope="module")
def lonely(tmp_path_factory: pytest.TempPathFactory) -> Generator[Lonely]:
    folder = tmp_path_factory.mktemp("lonely")
    with ExitStack() as stack:
        temporal = stack.enter_context(temporal_server(folder / "temporal"))
        project = Project(folder, temporal.address, "zygote", NAMES)
        made = Lonely(project, temporal)
        stack.callback(made.metered.host.kill)
        yield made


@pytest.fixture
def alone(lonely: Lonely) -> Metered:
    return lonely.metered


# --- runs ------------------------------------------------------------------------------------------------------------


def ends(stage: Metered, outcome: str, **labels: str) -> float:
    return stage.value("agentvisor_runs_total", outcome=outcome, **labels)


@moves(
    "agentvisor_runs_total",
    "agentvisor_run_seconds",
    "agentvisor_ended_attempts_total",
    "agentvisor_agent_start_seconds",
    "agentvisor_state_share",
    "agentvisor_state_bytes",
)
def test_runs_are_counted_by_outcome_and_framework(stage: Metered) -> None:
    told = {"agent": "calls", "framework": "function"}
    before = {one: ends(stage, one, **told) for one in ("success", "error", "paused")}
    assert [stage.call(f"metered:{one}")[1] for one in ("saves", "fails", "asks")] == ["success", "error", "success"]
    for outcome, number in before.items():
        until(lambda outcome=outcome, number=number: ends(stage, outcome, **told) == number + 1)
    body = {"assistant_id": "graph", "input": {"given": "x"}, "config": {"configurable": {"graph": "five_nodes:graph"}}}
    stage.http.post(f"/threads/{uuid4()}/runs/wait", json={**body, "if_not_exists": "create"})
    until(lambda: ends(stage, "success", agent="graph", framework="langgraph") == 1)


@moves("agentvisor_live_attempts", "agentvisor_run_capacity", "agentvisor_guests")
def test_what_lives_on_the_host_is_shown_and_a_cancelled_run_is_counted(stage: Metered, tmp_path: Path) -> None:
    before = ends(stage, "interrupted")
    gate = tmp_path / "gate"
    thread, run = stage.start("metered:waits", gate=str(gate))
    stage.until("agentvisor_live_attempts", 1)
    stage.until("agentvisor_run_capacity", 32)
    stage.until("agentvisor_guests", 1, agent="calls", state="busy")
    _, queued = stage.start("metered:saves", thread)
    assert stage.http.post(f"/threads/{thread}/runs/{queued}/cancel?action=rollback").status_code < 300
    stage.http.post(f"/threads/{thread}/runs/{run}/cancel?wait=1")
    until(lambda: (ends(stage, "interrupted"), ends(stage, "rolled_back")) == (before + 1, 1))
    until(lambda: stage.value("agentvisor_live_attempts") == stage.value("agentvisor_guests", state="busy") == 0)


@moves("agentvisor_restarts_total", "agentvisor_given_up_runs_total")
def test_restarts_are_counted_by_how_the_attempt_ended(stage: Metered) -> None:
    errors = ends(stage, "error")
    assert stage.call("metered:dies")[1] == "error"
    until(lambda: stage.value("agentvisor_given_up_runs_total", ending="agent_signal") == 1)
    assert stage.value("agentvisor_restarts_total", ending="agent_signal") == 3
    assert ends(stage, "error") == errors + 1


# --- the journal -----------------------------------------------------------------------------------------------------


@moves(
    "agentvisor_heartbeats_total",
    "agentvisor_commit_seconds",
    "agentvisor_commit_operations",
    "agentvisor_log_bytes",
    "agentvisor_write_seconds",
    "agentvisor_folds_total",
    "agentvisor_fold_bytes",
)
def test_commits_and_folds_are_measured(stage: Metered) -> None:
    names = ["agentvisor_write_seconds", "agentvisor_commit_operations"]
    before, made = stage.counts(names), stage.value("agentvisor_commit_operations_sum")
    stage.call("metered:saves", times=20, size=8_000)
    writes, commits = (stage.counts(names)[name] - before[name] for name in names)
    operations = stage.value("agentvisor_commit_operations_sum") - made
    assert operations >= writes >= 20, "each save was waited for, and has at least one operation"
    assert 0 < commits <= operations


@moves("agentvisor_compactions_total", "agentvisor_compacted_bytes")
def test_compactions_are_counted(stage: Metered) -> None:
    thread, _ = stage.call("metered:saves")
    for number in range(40):
        stage.http.patch(f"/threads/{thread}", json={"metadata": {"number": number}})
    stage.call("metered:saves")
    until(lambda: stage.value("agentvisor_compactions_total", guest="idle") >= 1)


# --- guests and sessions ---------------------------------------------------------------------------------------------


def supervisors(stage: Metered) -> list[psutil.Process]:
    children = psutil.Process(stage.host.pid).children(recursive=True)
    return [one for one in children if "agentvisor.guest.supervisor" in one.cmdline()]


@moves("agentvisor_guest_starts_total", "agentvisor_guest_start_seconds", "agentvisor_ended_guests_total")
def test_a_guest_that_is_killed_is_counted_and_so_is_its_successor(stage: Metered, tmp_path: Path) -> None:
    thread, run = stage.start("metered:waits", gate=str(tmp_path / "gate"))
    until((tmp_path / "gate.began").exists)
    for one in supervisors(stage):
        one.kill()
    (tmp_path / "gate").touch()
    assert stage.ended(thread, run) == "success"
    until(lambda: stage.value("agentvisor_ended_guests_total", ending="guest_gone", agent="calls") == 1)
    assert stage.value("agentvisor_restarts_total", ending="guest_gone") == 1


@moves("agentvisor_sessions", "agentvisor_sessions_opened_total")
def test_a_clients_session_is_shown_until_it_is_idle(stage: Metered) -> None:
    thread, _ = stage.call("metered:saves")
    assert stage.http.put(f"/threads/{thread}/thread-state/k", json={"value": {"x": 1}}).status_code == 200
    stage.until("agentvisor_sessions", 1)
    until(lambda: stage.value("agentvisor_sessions") == 0)


# --- HTTP and streams ------------------------------------------------------------------------------------------------


@moves("agentvisor_http_requests_total", "agentvisor_http_request_seconds")
def test_requests_are_counted_by_template_method_and_status(stage: Metered) -> None:
    def number(route: str, status: str, method: str = "GET") -> float:
        return stage.value("agentvisor_http_requests_total", route=route, status=status, method=method)

    thread = stage.http.post("/threads", json={}).json()["thread_id"]
    before = number("/threads/{thread_id}", "200"), number("none", "404"), number("/threads/{thread_id}", "404")
    for path in (f"/threads/{thread}", "/no/such/page", f"/threads/{uuid4()}"):
        stage.http.get(path)
    assert stage.http.request("BREW", "/threads").status_code == 405
    after = number("/threads/{thread_id}", "200"), number("none", "404"), number("/threads/{thread_id}", "404")
    assert after == tuple(one + 1 for one in before)
    assert number("/threads", "200", "POST") >= 1
    assert stage.value("agentvisor_http_requests_total", method="OTHER") == 1


def test_nothing_that_a_caller_chooses_becomes_a_label(stage: Metered) -> None:
    canary = f"canary-{uuid4().hex}"
    stage.http.get(f"/{canary}")
    stage.http.get(f"/threads/{canary}", headers={"x-request-id": canary})
    stage.http.request(canary.upper()[:20], "/ok")
    stage.http.post(f"/threads/{canary}/runs/wait", json={"assistant_id": canary, "if_not_exists": "create"})
    stage.call("metered:saves")
    text = stage.http.get("/metrics").text
    assert "canary" not in text.lower()
    assert str(stage.host.pid) not in re.sub(r" \S+$", "", text, flags=re.MULTILINE), "the host's queue has its pid"
    known = {name for one in TABLE.values() for name in one.labels} | {"le", "implementation", "major", "minor"}
    labels = {name for family in stage.families() for one in family.samples for name in one.labels}
    assert labels <= known | {"patchlevel", "version", "generation"}


@moves("agentvisor_streams", "agentvisor_http_requests_in_flight", "agentvisor_stream_events_total")
def test_open_streams_and_their_events_are_shown(stage: Metered, tmp_path: Path) -> None:
    body = {"assistant_id": "calls", "input": {"call": "metered:waits", "with": {"gate": str(tmp_path / "gate")}}}
    with ThreadPoolExecutor(1) as pool:
        stream = pool.submit(
            httpx.post,
            f"{stage.host.url}/threads/{uuid4()}/runs/stream",
            json={**body, "if_not_exists": "create"},
            timeout=60,
        )
        stage.until("agentvisor_streams", 1)
        stage.until("agentvisor_http_requests_in_flight", 2)  # the other is the scrape
        (tmp_path / "gate").touch()
        assert stream.result().status_code == 200
    until(lambda: stage.value("agentvisor_streams") == 0)


# --- external storage ------------------------------------------------------------------------------------------------


@moves(
    "agentvisor_storage_requests_total",
    "agentvisor_storage_request_seconds",
    "agentvisor_storage_bytes_total",
    "agentvisor_moved_values_total",
)
def test_calls_to_external_storage_are_measured(stage: Metered) -> None:
    thread, status = stage.call("metered:grows", values=5, size=450_000)
    assert status == "success"
    assert stage.value("agentvisor_storage_bytes_total", call="put") >= 450_000
    assert stage.http.get(f"/threads/{thread}/history").status_code == 200
    assert stage.http.delete(f"/threads/{thread}").status_code < 300
    until(lambda: stage.value("agentvisor_storage_requests_total", call="delete", outcome="done") >= 1)


# --- webhooks and crons ----------------------------------------------------------------------------------------------


@moves("agentvisor_webhooks_total", "agentvisor_worker_slots_used")
def test_webhooks_are_counted_and_take_their_workers_slots(stage: Metered) -> None:
    with receiving() as receiver:
        receiver.hold.clear()
        body = {"assistant_id": "calls", "input": {"call": "metered:saves"}, "webhook": receiver.url("/done")}
        stage.http.post(f"/threads/{uuid4()}/runs", json={**body, "if_not_exists": "create"})
        stage.until("agentvisor_worker_slots_used", 1, worker="webhooks", kind="activity")
        receiver.hold.set()
        until(lambda: stage.value("agentvisor_webhooks_total", outcome="delivered") == 1)


@moves("agentvisor_cron_runs_total")
def test_firings_of_crons_are_counted(stage: Metered, temporal: str) -> None:
    body = {"assistant_id": "calls", "input": {"call": "metered:saves"}, "schedule": "0 0 1 1 *"}
    cron = stage.http.post("/runs/crons", json=body).json()["cron_id"]

    async def fire() -> None:
        client = await Client.connect(temporal)
        queue = re.search(r"task_queue: (\S+)", stage.project._settings)
        assert queue is not None
        schedule = client.get_schedule_handle(f"agentvisor-cron:{queue[1]}:{cron}")
        await schedule.backfill(ScheduleBackfill(datetime(2020, 6, 1, tzinfo=UTC), datetime(2021, 6, 1, tzinfo=UTC)))

    asyncio.run(fire())
    until(lambda: stage.value("agentvisor_cron_runs_total", outcome="started") == 1)


# --- Temporal --------------------------------------------------------------------------------------------------------


@moves(
    "agentvisor_temporal_requests_total",
    "agentvisor_temporal_request_seconds",
    "agentvisor_temporal_request_failures_total",
    "agentvisor_worker_pollers",
    "agentvisor_worker_slots_free",
    "agentvisor_worker_schedule_to_start_seconds",
    "agentvisor_workflow_task_seconds",
    "agentvisor_cached_workflows",
)
def test_what_the_sdk_knows_of_workers_and_calls_is_told(stage: Metered) -> None:
    stage.call("metered:saves")
    assert stage.http.get(f"/threads/{uuid4()}").status_code == 404
    stage.until("agentvisor_worker_pollers", 1, worker="runs", kind="workflow")
    stage.until("agentvisor_worker_slots_free", 40, worker="runs", kind="workflow")
    stage.until("agentvisor_cached_workflows", 1, worker="runs")
    until(
        lambda: stage.value("agentvisor_temporal_request_failures_total", operation="QueryWorkflow", code="NOT_FOUND")
    )
    waited = stage.value("agentvisor_worker_schedule_to_start_seconds_count", worker="runs", kind="activity")
    assert waited >= 1
    assert stage.value("agentvisor_temporal_requests_total", operation="RecordActivityTaskHeartbeat") >= 1


@moves("agentvisor_threads", "agentvisor_build_info")
def test_threads_by_status_and_the_version_are_told(stage: Metered) -> None:
    stage.call("metered:asks")
    stage.until("agentvisor_threads", 1, status="interrupted")
    stage.until("agentvisor_build_info", 1, version=__version__)
    assert stage.value("process_resident_memory_bytes") > 1_000_000


# --- a host that needs a key, and is killed --------------------------------------------------------------------------


@moves("agentvisor_refused_callers_total")
def test_refused_callers_are_counted_and_only_the_operator_reads_metrics(alone: Metered) -> None:
    assert httpx.get(f"{alone.host.url}/metrics").status_code == 401
    assert httpx.get(f"{alone.host.url}/metrics", headers={"X-Api-Key": "no"}).status_code == 401
    assert [alone.value("agentvisor_refused_callers_total", reason=one) for one in ("nothing_shown", "key")] == [1, 1]
    assert alone.value("agentvisor_http_requests_total", route="none", status="401") == 2


@moves("agentvisor_threads_near_limit_total")
def test_a_thread_near_its_limit_is_counted_once(alone: Metered) -> None:
    alone.call("limits:together", sizes=[90_000, 75_000])
    assert alone.value("agentvisor_threads_near_limit_total") == 1


@moves("agentvisor_workflow_task_failures_total")
def test_a_step_of_a_workflow_that_fails_is_counted(alone: Metered, lonely: Lonely) -> None:
    thread, queue = str(uuid4()), re.search(r"task_queue: (\S+)", alone.project._settings)
    assert queue is not None

    async def break_it() -> None:
        # What no host of this version can read, as a thread that a newer one has written.
        client = await Client.connect(lonely.temporal.address)
        await client.start_workflow("agentvisor.thread", b"\xff\xff no thread", id=thread, task_queue=queue[1])

    asyncio.run(break_it())
    until(lambda: alone.value("agentvisor_workflow_task_failures_total", worker="runs") >= 1)

    async def end_it() -> None:
        await (await Client.connect(lonely.temporal.address)).get_workflow_handle(thread).terminate()

    asyncio.run(end_it())


class Restarted(NamedTuple):
    """A host that has nothing in memory of the threads that it answers for."""

    stage: Metered
    thread: str
    run: str


@pytest.fixture(scope="module")
def restarted(lonely: Lonely) -> Restarted:
    stage = lonely.metered
    thread, run = stage.start("metered:saves")
    assert stage.ended(thread, run) == "success"
    _, died = stage.start("metered:dies", thread)
    assert stage.ended(thread, died) == "error"
    assert stage.value("agentvisor_restarts_total") == 3
    stage.host.kill()
    stage.host.start()
    return Restarted(stage, thread, run)


def test_a_replay_counts_nothing_again(restarted: Restarted) -> None:
    stage, thread = restarted.stage, restarted.thread
    # To answer, the new host goes through the thread's whole history.
    runs = stage.http.get(f"/threads/{thread}/runs").json()
    assert sorted(one["status"] for one in runs) == ["error", "success"]
    for name in ("runs_total", "restarts_total", "given_up_runs_total", "compactions_total", "ended_attempts_total"):
        assert stage.value(f"agentvisor_{name}") == 0, name
    _, again = stage.start("metered:saves", thread)
    assert stage.ended(thread, again) == "success"
    until(lambda: stage.value("agentvisor_runs_total", outcome="success") == 1)
    assert stage.value("agentvisor_runs_total") == 1
    assert stage.value("agentvisor_run_seconds_count") == 1


@moves("agentvisor_stream_gaps_total")
def test_a_reader_whose_events_went_with_a_host_is_counted(alone: Metered, restarted: Restarted) -> None:
    path = f"/threads/{restarted.thread}/runs/{restarted.run}/stream"
    assert "event: gap" in alone.http.get(path, headers={"Last-Event-ID": "-1"}).text
    assert alone.value("agentvisor_stream_gaps_total", reason="lost") == 1


@moves("agentvisor_temporal_poll_failures_total")
def test_an_outage_of_temporal_is_seen(alone: Metered, restarted: Restarted, lonely: Lonely, tmp_path: Path) -> None:
    alone.start("metered:waits", gate=str(tmp_path / "gate"))
    until((tmp_path / "gate.began").exists)
    lonely.temporal.kill()
    until(lambda: alone.value("agentvisor_heartbeats_total", outcome="unknown") >= 1)
    until(lambda: alone.value("agentvisor_temporal_request_failures_total", code="TRANSPORT_ERROR") >= 1)
    until(lambda: alone.value("agentvisor_temporal_poll_failures_total") >= 1)
    until(lambda: not any(name == "agentvisor_threads" for name, _ in alone.samples()))


# --- in the process of the test --------------------------------------------------------------------------------------


async def test_what_a_compaction_leaves_out_is_counted_by_step(temporal: str) -> None:
    MOVED["agentvisor_shed_total"] = "test_what_a_compaction_leaves_out_is_counted_by_step"

    def shed() -> float:
        return REGISTRY.get_sample_value("agentvisor_shed_total", {"step": "history"}) or 0

    async def writes(agent: ScriptedAgent) -> None:
        for number in range(8):
            await agent.call(put(number, size=20_000))

    before, thread_id = shed(), new_thread()
    knobs = Knobs(compact_events=60, compaction_bytes=60_000)
    async with engine_host(temporal, f"q-{uuid4().hex[:8]}", knobs=knobs, guests=ScriptedGuests(agent=writes)) as host:
        run = await host.start_run(thread_id, "agent")
        await asyncio.wait_for(host.threads.wait_run(thread_id, run), 20)
        await make_compaction_due(host.threads, thread_id, events=60)
        thread = await until_compacted(host.threads, thread_id)
    assert shed() - before == thread.left_out["history"] > 0


# --- the table -------------------------------------------------------------------------------------------------------


def test_every_metric_of_the_table_has_a_test_that_moves_it() -> None:
    shown = {*MOVED, *ELSEWHERE, "agentvisor_shed_total"}
    assert TABLE.keys() - shown == set(), "give it a test here"
    assert shown - TABLE.keys() == set(), "there is no such metric"
    assert MOVED.keys() & ELSEWHERE.keys() == set()


@pytest.mark.parametrize("metric", ELSEWHERE)
def test_a_test_elsewhere_is_there_and_names_its_metric(metric: str) -> None:
    file, test = ELSEWHERE[metric]
    text = (ROOT / file).read_text()
    assert re.search(rf"^(async )?def {test}\(", text, re.MULTILINE)
    from agentvisor.host import metrics

    python_name = next(name for name, one in vars(metrics).items() if one is TABLE[metric].metric)
    assert metric in text or f"metrics.{python_name}" in text
