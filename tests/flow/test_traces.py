"""One trace from the client to the agent's own spans, whatever is killed on the way; and nothing twice."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from temporalio.client import Client, ScheduleBackfill
from tests.flow.conftest import Project
from tests.support.collector import Collector, Spanned, collecting
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until
from tests.support.webhooks import receiving

pytestmark = pytest.mark.flow

ON = {"AGENTVISOR_TELEMETRY_TRACES": "true", "AGENTVISOR_HTTP_WEBHOOK_ALLOW_PRIVATE": "true"}


@pytest.fixture(scope="module")
def collector() -> Generator[Collector]:
    with collecting() as one:
        yield one


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, temporal: str, collector: Collector) -> Generator[Project]:
    """A project whose host traces, and is running."""
    project = Project(tmp_path_factory.mktemp("traces"), temporal, "zygote", {"thinks": "traced.py:think"})
    start(project, collector)
    yield project
    for host in project.hosts:
        host.stop()


def start(project: Project, collector: Collector) -> HostProcess:
    return project.host(ON | collector.environment, **collector.environment)


def traceparent() -> tuple[str, str, str]:
    """A client's span: the header, and the ids of the trace and the span."""
    trace_id, span_id = uuid4().hex, uuid4().hex[:16]
    return f"00-{trace_id}-{span_id}-01", trace_id, span_id


def begin(host: HostProcess, header: str, **more: object) -> tuple[str, str]:
    thread = uuid4().hex
    asked = {"assistant_id": "thinks", "if_not_exists": "create", **more}
    answer = httpx.post(f"{host.url}/threads/{thread}/runs", json=asked, headers={"traceparent": header})
    answer.raise_for_status()
    return thread, answer.json()["run_id"]


def status(host: HostProcess, thread: str, run: str) -> str:
    return str(httpx.get(f"{host.url}/threads/{thread}/runs/{run}").json().get("status"))


async def fire_cron(project: Project, temporal: str, cron: str) -> None:
    """As Temporal does it once in a year."""
    client = await Client.connect(temporal)
    queue = re.search(r"task_queue: (\S+)", project._settings)
    assert queue is not None
    schedule = client.get_schedule_handle(f"agentvisor-cron:{queue[1]}:{cron}")
    await schedule.backfill(ScheduleBackfill(datetime(2020, 6, 1, tzinfo=UTC), datetime(2021, 6, 1, tzinfo=UTC)))


def check_children(parent: Spanned, *children: Spanned) -> None:
    assert [one.parent_id for one in children] == [parent.span_id] * len(children)


def test_one_trace_holds_client_request_run_attempts_and_the_agents_own_spans_over_kills(
    project: Project, collector: Collector
) -> None:
    header, trace_id, client = traceparent()
    host = project.hosts[-1]
    thread, run = begin(host, header, input={"waits": True})
    until(lambda: project.did()["thought 1"])
    os.kill(project.pid_of("thought 1"), signal.SIGKILL)
    until(lambda: project.did()["thought 2"])
    host.kill()
    host = start(project, collector)
    until(lambda: project.did()["thought 3"])
    Path(f"{project.gate}3").touch()
    until(lambda: status(host, thread, run) == "success")

    (request,) = collector.until(trace_id, "POST /threads/{thread_id}/runs")
    (whole,) = collector.until(trace_id, "run thinks")
    attempts = collector.until(trace_id, "attempt thinks", 3)
    thoughts = collector.until(trace_id, "think", 3)
    assert (request.parent_id, whole.parent_id) == (client, request.span_id)
    check_children(whole, *attempts)
    assert [one.parent_id for one in thoughts] == [one.span_id for one in attempts]
    assert {one.service for one in thoughts} == {"my-agent"}
    assert {one.service for one in (request, whole, *attempts)} == {"agentvisor"}

    assert [one.attributes["agentvisor.ending"] for one in attempts] == ["agent_signal", "host_gone", "completed"]
    assert [one.failed for one in (*attempts, whole)] == [True, True, False, False]
    assert [one.links for one in attempts] == [(), (attempts[0].span_id,), (attempts[1].span_id,)]
    for number, one in enumerate(attempts, 1):
        shown = one.attributes
        assert (shown["agentvisor.thread_id"], shown["agentvisor.run_id"]) == (thread, run)
        assert (shown["agentvisor.attempt"], shown["gen_ai.agent.name"]) == (number, "thinks")
    assert whole.attributes["agentvisor.attempts"] == 3
    assert request.attributes["http.response.status_code"] == 200
    assert whole.start_ns <= attempts[0].start_ns
    assert attempts[-1].end_ns <= whole.end_ns
    journal = collector.until(trace_id, "journal")[-1]
    assert journal.parent_id == attempts[-1].span_id
    assert journal.attributes["agentvisor.journal.commits"] >= 1

    # Cold threads are replayed: for a query, for another run, by a host that has just started.
    whole_trace = len(collector.trace(trace_id))
    host.kill()
    host = start(project, collector)
    for path in ("state", "history", f"runs/{run}"):
        httpx.get(f"{host.url}/threads/{thread}/{path}").raise_for_status()
    again, another, _ = traceparent()
    asked = {"assistant_id": "thinks", "input": {}}
    httpx.post(f"{host.url}/threads/{thread}/runs/wait", json=asked, headers={"traceparent": again}, timeout=30)
    collector.until(another, "run thinks")
    assert len(collector.trace(trace_id)) == whole_trace
    assert collector.twice() == []


def test_a_webhook_is_sent_within_the_runs_trace(project: Project, collector: Collector) -> None:
    header, trace_id, _ = traceparent()
    with receiving() as receiver:
        begin(project.hosts[-1], header, input={}, webhook=receiver.url("/told"))
        (sent,) = collector.until(trace_id, "webhook")
        (whole,) = collector.until(trace_id, "run thinks")
        check_children(whole, sent)
        assert receiver.at("/told")[0].headers["traceparent"] == f"00-{trace_id}-{sent.span_id}-01"


def test_a_cron_that_fires_begins_a_trace_that_its_run_is_in(
    project: Project, collector: Collector, temporal: str
) -> None:
    body = {"assistant_id": "thinks", "input": {}, "schedule": "0 0 1 1 *"}
    header, asked_in, _ = traceparent()
    made = httpx.post(f"{project.hosts[-1].url}/runs/crons", json=body, headers={"traceparent": header})
    cron = made.json()["cron_id"]
    asyncio.run(fire_cron(project, temporal, cron))

    def fired() -> list[Spanned]:
        return [one for one in collector.spans if one.attributes.get("agentvisor.cron_id") == cron]

    until(fired)
    (span,) = fired()
    assert (span.name, span.parent_id) == ("cron", "")
    assert span.trace_id != asked_in, "who made the cron asked for none of its runs"
    (whole,) = collector.until(span.trace_id, "run thinks")
    (attempt,) = collector.until(span.trace_id, "attempt thinks")
    (thought,) = collector.until(span.trace_id, "think")
    check_children(span, whole)
    check_children(whole, attempt)
    check_children(attempt, thought)
    assert span.attributes["agentvisor.run_id"] == whole.attributes["agentvisor.run_id"]


def test_a_host_that_another_one_asks_for_a_runs_events_is_in_the_readers_trace(
    project: Project, collector: Collector
) -> None:
    hosts = [project.hosts[-1], start(project, collector)]
    thread, run = begin(hosts[0], traceparent()[0], input={})
    until(lambda: status(hosts[0], thread, run) == "success")

    def read(host: HostProcess) -> str:
        header, trace_id, _ = traceparent()
        headers = {"traceparent": header, "Last-Event-ID": "-1"}
        httpx.get(f"{host.url}/threads/{thread}/runs/{run}/stream", headers=headers, timeout=30)
        return trace_id

    traces = [read(host) for host in hosts]

    def asked() -> list[Spanned]:
        tapes = "GET /internal/v1/tapes/{thread_id}/{run_id}"
        return [one for trace_id in traces for one in collector.named(trace_id, tapes)]

    until(asked)
    for there in asked():
        (reading,) = collector.until(there.trace_id, "GET /threads/{thread_id}/runs/{run_id}/stream")
        check_children(reading, there)
        assert there.attributes["http.response.status_code"] == 200


def test_a_trace_that_its_client_does_not_record_is_not_recorded(project: Project, collector: Collector) -> None:
    header, trace_id, _ = traceparent()
    recorded, other, _ = traceparent()
    host = project.hosts[-1]
    for given in (header[:-2] + "00", recorded):
        thread, run = begin(host, given, input={})
        until(lambda thread=thread, run=run: status(host, thread, run) == "success")
    collector.until(other, "run thinks")
    assert collector.trace(trace_id) == []


def test_spans_hold_no_contents_and_no_query(project: Project, collector: Collector) -> None:
    header, trace_id, _ = traceparent()
    host = project.hosts[-1]
    begin(host, header, input={"canary": "canary-input"}, metadata={"canary": "canary-metadata"})
    httpx.get(f"{host.url}/threads/canary-path?canary=query", headers={"traceparent": header})
    collector.until(trace_id, "run thinks")
    collector.until(trace_id, "GET /threads/{thread_id}")
    told = b"".join(one.body for one in collector.receiver.got)
    assert b"canary-input" not in told
    assert b"canary-metadata" not in told
    assert b"canary=query" not in told


def test_a_collector_that_does_not_answer_slows_no_run_and_no_end(zygote_project: Project) -> None:
    zygote_project.names = {"echo": "plain.py:echo"}
    with receiving() as deaf:
        deaf.hold.clear()
        gone = {"OTEL_EXPORTER_OTLP_ENDPOINT": deaf.url(""), "OTEL_BSP_SCHEDULE_DELAY": "10"}
        host = zygote_project.host(ON | gone)
        seconds = list[float]()
        for _ in range(3):
            began = time.monotonic()
            asked = {"assistant_id": "echo", "input": "x"}
            assert httpx.post(f"{host.url}/runs/wait", json=asked, timeout=30).status_code == 200
            seconds.append(time.monotonic() - began)
        until(lambda: deaf.got)
        began = time.monotonic()
        host.stop()
        assert time.monotonic() - began < 15
        assert min(seconds) < 5
