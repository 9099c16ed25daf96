"""An agent knows its run and tells its progress, from nodes, tools, threads and coroutines, and nowhere else."""

from typing import Any
from uuid import uuid4

import pytest
from langgraph_sdk.client import SyncLangGraphClient
from tests.flow.conftest import Project, called, client_of

import agentvisor

pytestmark = pytest.mark.flow


def streamed(client: SyncLangGraphClient, agent: str, modes: list[Any], **options: Any) -> list[tuple[str, Any]]:
    parts = client.runs.stream(str(uuid4()), agent, if_not_exists="create", stream_mode=modes, **options)
    return [(part.event, part.data) for part in parts if part.event != "metadata"]


@pytest.fixture
def client(shared: Project) -> SyncLangGraphClient:
    return client_of(shared.hosts[0])


def test_a_plain_agent_is_told_the_same_of_its_run_wherever_it_asks(client: SyncLangGraphClient) -> None:
    thread = str(uuid4())
    given = {"call": "running:everywhere"}
    answers: Any = client.runs.wait(thread, "calls", input=given, metadata={"team": "a"}, if_not_exists="create")
    (run,) = client.runs.list(thread)
    first = answers[0]
    assert first == {
        "thread": thread, "run": run["run_id"], "attempt": 1, "agent": "calls", "metadata": {"team": "a"},
        "is_restart": False, "minutes_left": first["minutes_left"],
    }  # fmt: skip
    # 30 minutes, less what has passed.
    assert 0 < first["minutes_left"] <= 30
    assert [one | {"minutes_left": 0} for one in answers[1:]] == [first | {"minutes_left": 0}] * 5


def test_a_restarted_attempt_knows_that_it_is_one(client: SyncLangGraphClient) -> None:
    _, answer = called(client, "running:dies_once")
    assert (answer["attempt"], answer["is_restart"]) == (2, True)


def test_a_strands_tool_is_told_of_its_run_and_tells_its_progress(client: SyncLangGraphClient) -> None:
    events = streamed(client, "calls", ["custom", "values"], input={"call": "running:strands"})
    assert events[0] == ("custom", {"in": "tool"})
    assert (events[-1][1]["agent"], events[-1][1]["attempt"]) == ("calls", 1)


def test_nodes_are_told_and_their_progress_stands_among_the_graphs_own_events(client: SyncLangGraphClient) -> None:
    config = {"configurable": {"graph": "running:graph"}}
    events = streamed(client, "graph", ["custom", "updates", "values"], input={}, config=config)
    assert [data["in"] if event == "custom" else next(iter(data)) for event, data in events if event != "values"] == [
        "node", "node", "anode", "inner", "worker 1", "worker",
    ]  # fmt: skip
    first, second = next(data["told"] for event, data in reversed(events) if event == "values")
    assert (first["agent"], first["attempt"]) == ("graph", 1)
    assert first | {"minutes_left": 0} == second | {"minutes_left": 0}


def test_progress_arrives_in_the_order_in_which_it_was_told(client: SyncLangGraphClient) -> None:
    events = streamed(client, "calls", ["custom"], input={"call": "running:says_from_everywhere"})
    assert events == [("custom", number) for number in range(5)]


def test_progress_that_cannot_be_told_is_refused_where_it_is_told(client: SyncLangGraphClient) -> None:
    _, answers = called(client, "running:says", given=[{"done": 1}, None, "a set", "much"])
    assert answers[:3] == ["said", "said", "the progress event['in'][0] is not JSON: set"]
    assert "its limit is 4194304" in answers[3]


def test_a_process_that_the_agent_starts_is_told_that_it_is_none(client: SyncLangGraphClient) -> None:
    _, answer = called(client, "running:in_a_child")
    assert "call AgentVisor from the agent's process, not from one that it starts" in answer


@pytest.mark.parametrize("call", [agentvisor.current_run, lambda: agentvisor.progress(1)])
def test_outside_of_a_run_both_say_so(call: Any) -> None:
    with pytest.raises(ValueError, match="works inside a run"):
        call()


def ended(client: SyncLangGraphClient, agent: str, **options: Any) -> Any:
    thread = str(uuid4())
    run = client.runs.create(thread, agent, if_not_exists="create", **options)
    client.runs.join(thread, run["run_id"])
    return client.runs.get(thread, run["run_id"])


def test_what_sys_exit_was_told_is_the_runs_error(client: SyncLangGraphClient) -> None:
    given = {"call": "running:leaves", "with": {"text": "no such customer: 7"}}
    run = ended(client, "calls", input=given)
    assert (run["status"], run["error"]["error"]) == ("error", "SystemExit")
    assert run["error"]["message"].splitlines()[0] == "no such customer: 7"
    assert [one["ending"] for one in run["attempts"]] == ["agent_error"]
    run = ended(client, "graph", input={}, config={"configurable": {"graph": "running:leaving_graph"}})
    assert (run["status"], run["error"]["error"]) == ("error", "SystemExit")
    assert run["error"]["message"].splitlines()[0] == "the graph has had enough"
