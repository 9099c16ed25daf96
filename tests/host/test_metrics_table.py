"""The table of metrics keeps Prometheus' conventions; labels stay few; a replay counts nothing."""

import re
from collections.abc import Generator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY, generate_latest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from agentvisor.core.runs import CONSEQUENCES, Ending, Follow
from agentvisor.host import counts, metrics
from agentvisor.host.config_tree import AgentConfig
from agentvisor.host.counts import count_workflow, know_agents, learn_framework
from agentvisor.host.metrics import TABLE
from agentvisor.host.worker import workflow_runner
from agentvisor.host.workflow.hearing import COUNTS, ENDS, NOTES, Counted
from agentvisor.host.workflow.thread import ThreadWorkflow

HISTORIES = sorted((Path(__file__).parents[1] / "histories" / "recorded").glob("run*.json"))
UNITS = ("_seconds", "_bytes", "_share", "_operations")
IDS = ("thread", "run", "owner", "caller", "path", "url", "checkpoint", "host_id", "task_queue", "namespace")


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0


# --- the table -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLE)
def test_a_metric_is_named_as_prometheus_asks(name: str) -> None:
    one = TABLE[name]
    assert re.fullmatch(r"agentvisor_[a-z]+(_[a-z]+)*", name)
    assert name.endswith("_total") == (one.kind == "counter")
    assert one.kind != "histogram" or name.endswith(UNITS)
    assert not re.search(r"_(ms|milliseconds|kb|mb|percent|count|sum|bucket)(_|$)", name)
    assert one.says[0].isupper() or one.says[0].isdigit()
    assert one.says.endswith(".") or one.kind == "gauge"


def test_no_label_could_hold_an_id() -> None:
    assert {name for one in TABLE.values() for name in one.labels} & {*IDS} == set()


def test_every_metric_of_the_module_is_in_the_table() -> None:
    collectors = [one for one in vars(metrics).values() if isinstance(one, metrics.Metric)]
    assert [one.metric for one in TABLE.values()] == collectors


def test_what_can_be_counted_is_there_at_zero_from_the_start() -> None:
    shown = generate_latest().decode()
    for ending in Ending:
        restarts = CONSEQUENCES[ending].follow is Follow.RESTART
        assert (f'agentvisor_restarts_total{{ending="{ending.name.lower()}"}} ' in shown) == restarts
    assert 'agentvisor_failed_threads_total{reason="journal_gap"} ' in shown
    assert "_created" not in shown


# --- what workflows count --------------------------------------------------------------------------------------------


@pytest.fixture
def known() -> Generator[None]:
    before = dict(counts._frameworks)
    know_agents({"desk": AgentConfig(entrypoint="a:b"), "told": AgentConfig(entrypoint="a:b", framework="strands")})
    yield
    counts._frameworks.clear()
    counts._frameworks.update(before)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    "agent, said, shown",
    [
        ("desk", "langgraph", ("desk", "langgraph")),
        ("desk", "", ("desk", "unknown")),
        ("desk", "evil\n", ("desk", "unknown")),
        ("told", "", ("told", "strands")),
        ("gone", "function", ("other", "function")),
        ("gone", "", ("other", "other")),
    ],
)
def test_an_agents_name_and_framework_are_labels_only_where_we_know_them(
    agent: str, said: str, shown: tuple[str, str]
) -> None:
    labels = {"agent": shown[0], "framework": shown[1], "outcome": "success"}
    before = value("agentvisor_runs_total", **labels)
    count_workflow(Counted.ENDED, (agent, said, "success"), 2.0)
    assert value("agentvisor_runs_total", **labels) == before + 1


@pytest.mark.usefixtures("known")
def test_a_framework_that_was_told_once_is_known_of_runs_whose_process_said_nothing() -> None:
    learn_framework("desk", "adk")
    learn_framework("desk", "no framework")
    learn_framework("gone", "adk")
    assert value("agentvisor_runs_total", agent="desk", framework="adk", outcome="error") == 0
    count_workflow(Counted.ENDED, ("desk", "", "error"), 1.0)
    assert value("agentvisor_runs_total", agent="desk", framework="adk", outcome="error") == 1


async def test_replays_of_recorded_histories_count_log_and_trace_nothing() -> None:
    seen: list[object] = []

    def hear(*told: object) -> None:
        seen.append(told)

    replayer = Replayer(workflows=[ThreadWorkflow], workflow_runner=workflow_runner())
    with COUNTS.listening(hear), NOTES.listening(hear), ENDS.listening(hear):
        for path in HISTORIES:
            await replayer.replay_workflow(WorkflowHistory.from_json(path.stem, path.read_text()))
    assert HISTORIES
    assert seen == []
