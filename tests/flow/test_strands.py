"""Strands agents, graphs and swarms on real servers: killed with SIGKILL, asked, answered, streamed (S14, S15)."""

import json
from collections.abc import Generator
from typing import Any

import httpx
import pytest
from tests.flow.charging import KNOWN, UNKNOWN, charged, questions, storage, true_answer
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread
from tests.support.scripted import unmarked
from tests.support.waiting_sync import until

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]

OWN = ("pays", "together", "asks", "notes", "holds", "holding", "line", "asking", "nested", "waits", "waits_inside")
NAMES = {name: f"strands_native.py:{name}" for name in OWN}


@pytest.fixture(scope="module")
def strands(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[Project]:
    project = Project(tmp_path_factory.mktemp("strands"), temporal, "zygote", NAMES)
    project.host(FOLDER=str(project.folder))
    yield project
    for host in project.hosts:
        host.stop()


@pytest.fixture
def thread(strands: Project) -> VictimThread:
    return VictimThread(strands, strands.hosts[0])


def run(thread: VictimThread, agent: str, given: Any = None, *, well: bool = True, **more: Any) -> dict[str, Any]:
    started = thread.client.runs.create(thread.id, agent, input=given, **more)
    ended = thread.ended(str(started["run_id"]), seconds=60)
    assert not well or ended["status"] == "success", f"{ended['error']}\n{thread.told()}"
    return ended


def endings(run: dict[str, Any]) -> list[str]:
    return [str(one["ending"]) for one in run["attempts"]]


# --- kills ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["after intent", "after effect", "after done"])
def test_a_tool_charges_once_wherever_its_process_dies(thread: VictimThread, place: str) -> None:
    thread.tell("strike", place)
    ended = run(thread, "pays", "Pay twice.", well=place in KNOWN)
    if place in UNKNOWN:
        assert endings(ended) == ["agent_signal", "paused"], ended["error"]
        (asked,) = questions(thread)
        assert (asked["value"]["kind"], asked["value"]["key"]) == ("effect_unknown", "charge:plain")
        ended = run(thread, "pays", command={"resume": {asked["id"]: true_answer(thread, asked)}})
    else:
        assert endings(ended) == ["agent_signal", "completed"]
    assert charged(thread, "plain") == [2]
    assert thread.did()["model asked"] == 3
    assert thread.values()["text"] == "Paid twice."
    assert [one["role"] for one in thread.values()["messages"]] == ["user", "assistant"] * 3
    assert storage(thread)["effects"]["count"] == 2
    assert (thread.status(), questions(thread)) == ("idle", [])


def test_a_new_input_after_a_run_that_died_for_good_finds_the_call_answered_for(thread: VictimThread) -> None:
    thread.tell("die", "left")
    started = thread.client.runs.create(thread.id, "together", input="Go.")
    run_ = thread.ended(str(started["run_id"]), seconds=60)
    assert endings(run_) == ["agent_signal", "completed"]
    did = thread.did()
    assert (did["began left"], did["did left"], did["did right"]) == (2, 1, did["began right"])
    values = thread.values()
    assert values["text"] == "Both."
    assert [one["role"] for one in values["messages"]] == ["user", "assistant", "user", "assistant"]


@pytest.mark.parametrize("dies", ["a", "c"])
def test_a_graph_goes_on_at_the_node_that_died(thread: VictimThread, dies: str) -> None:
    thread.tell("die", dies)
    ended = run(thread, "line", "Go.")
    assert endings(ended) == ["agent_signal", "completed"]
    did = thread.did()
    assert [did[f"did {name}"] for name in "abc"] == [1, 1, 1]
    assert [did[f"began {name}"] for name in "abc"] == [2 if name == dies else 1 for name in "abc"]
    assert thread.values()["order"] == ["a", "b", "c"]
    assert thread.values()["text"] == "c is done."


@pytest.mark.parametrize("agent, first", [("holds", "hold"), ("holding", "b")])
def test_after_a_cancel_a_new_input_works(thread: VictimThread, agent: str, first: str) -> None:
    started = thread.client.runs.create(thread.id, agent, input="Go.")
    thread.until_it(f"began {first}")
    thread.client.runs.cancel(thread.id, started["run_id"])
    assert thread.ended(str(started["run_id"]))["status"] == "interrupted"
    thread.tell("gate")
    run(thread, agent, "Go again.")
    if agent == "holds":
        assert thread.values()["text"] == "Held."
        assert "may or may not have taken effect" in json.dumps(thread.values()["messages"])
    else:
        assert thread.values()["order"] == ["a", "b", "c"]


def test_a_host_that_stops_hands_its_runs_over_and_nothing_is_done_twice(zygote_project: Project) -> None:
    zygote_project.names = {name: NAMES[name] for name in ("holds", "holding")}
    old = zygote_project.new_host(command="serve", FOLDER=str(zygote_project.folder)).start()
    threads = {name: VictimThread(zygote_project, old) for name in zygote_project.names}
    runs = {name: one.client.runs.create(one.id, name, input="Go.")["run_id"] for name, one in threads.items()}
    threads["holds"].until_it("began hold")
    threads["holding"].until_it("began b")
    new = zygote_project.new_host(command="serve", FOLDER=str(zygote_project.folder)).start()
    old.tell()
    until(lambda: httpx.get(f"{old.url}/ok").status_code == 503)
    for name, thread in threads.items():
        thread.on(new)
        thread.tell("gate")
        ended = thread.ended(str(runs[name]), seconds=60)
        assert endings(ended) == ["host_stopped", "completed"], thread.told()
        assert set(thread.did().values()) == {1}
    assert set(threads["holding"].did()) == {f"{what} {name}" for what in ("began", "did") for name in "abc"}
    for host in (old, new):
        host.stop()


# --- questions --------------------------------------------------------------------------------------------------------


def test_an_agent_asks_and_a_new_input_is_refused_unless_the_question_is_given_up(thread: VictimThread) -> None:
    assert endings(run(thread, "asks", "Refund me.")) == ["paused"]
    (asked,) = questions(thread)
    assert asked["value"] == {"name": "approve", "reason": {"what": "refund"}}
    # The conversation so far is the thread's values, also while it waits.
    assert (thread.values()["text"], thread.values()["stop_reason"]) == ("Let me see.", "interrupt")
    assert [one["role"] for one in thread.values()["messages"]] == ["user", "assistant"]
    url = f"{thread.host.url}/threads/{thread.id}/runs"
    body = {"assistant_id": "asks", "input": "Never mind."}
    assert httpx.post(url, json=body).status_code == 409
    null = run(thread, "asks", command={"resume": {asked["id"]: None}}, well=False)
    assert "null is no answer" in null["error"]["message"]
    assert [one["id"] for one in questions(thread)] == [asked["id"]]
    given_up = httpx.post(url, json={**body, "on_interrupt": "abandon"})
    assert given_up.status_code == 200, given_up.text
    thread.ended(str(given_up.json()["run_id"]))
    assert questions(thread) == []
    assert "Abandoned" in json.dumps(thread.values()["messages"])
    assert thread.values()["text"] == "Well."


@pytest.mark.parametrize("agent", ["asking", "nested"])
def test_a_swarm_asks_and_the_agent_that_asked_goes_on_wherever_it_then_dies(thread: VictimThread, agent: str) -> None:
    assert endings(run(thread, agent, "Go.")) == ["paused"]
    (asked,) = questions(thread)
    thread.tell("die", "two")
    ended = run(thread, agent, command={"resume": "yes"})
    assert endings(ended) == ["agent_signal", "completed"]
    did = thread.did()
    assert (did["did one"], did["did two"]) == (1, 1)
    assert did["did a"] == (agent == "nested")
    late = httpx.post(
        f"{thread.host.url}/threads/{thread.id}/runs",
        json={"assistant_id": agent, "command": {"resume": {asked["id"]: "no"}}},
    )
    assert late.status_code == 409


@pytest.mark.parametrize("agent, said", [("waits", "by default"), ("waits_inside", "Went on.")])
def test_a_deadline_in_a_tool_answers_by_default(thread: VictimThread, agent: str, said: str) -> None:
    run(thread, agent, "Go.")
    last = {"waits": "Went on.", "waits_inside": "The other one did."}[agent]
    until(lambda: thread.status() == "idle" and thread.values().get("text") == last, seconds=60)
    assert said in json.dumps(thread.values()["messages"])
    assert questions(thread) == []


# --- what is seen -----------------------------------------------------------------------------------------------------


def test_what_the_agents_own_code_saves_does_not_disturb(thread: VictimThread) -> None:
    run(thread, "notes", "I am Bob.")
    run(thread, "notes", "Who am I?")
    assert thread.values()["text"] == "You are Bob."
    assert thread.values()["messages"][0]["content"] == [{"text": "I am Bob."}]


def test_a_state_of_another_agent_is_one_error_and_stays(thread: VictimThread) -> None:
    run(thread, "notes", "I am Bob.")
    refused = run(thread, "line", "Go.", well=False)
    assert refused["error"]["error"] == "IncompatibleState"
    assert "it is the state of the agent 'agent'; it was left as it is" in refused["error"]["message"]
    run(thread, "notes", "Who am I?")
    assert thread.values()["text"] == "You are Bob."


def test_the_stream_has_whole_messages_for_langgraphs_clients_and_nothing_that_is_no_json(thread: VictimThread) -> None:
    modes: Any = ["messages", "custom", "updates", "values"]
    events = list(thread.client.runs.stream(thread.id, "asks", input="Refund me.", stream_mode=modes))
    assert not [one for one in events if one.event == "error"]
    whole = [one.data[0] for one in events if one.event == "messages/partial"]
    assert whole[-1]["content"] == "Let me see."
    assert unmarked(whole[-1]["tool_calls"]) == [
        {"name": "approve", "args": {"what": "refund"}, "id": "call_1_1", "type": "tool_call"}
    ]
    told = [one.data["type"] for one in events if one.event == "custom"]
    assert told == ["text"] * 3 + ["tool_use", "message", "tool_interrupt"]
    last = events[-1].data
    assert [one["value"]["name"] for one in last["__interrupt__"]] == ["approve"]
    assert (last["text"], len(last["messages"])) == ("Let me see.", 2)
    (update,) = [one.data for one in events if one.event == "updates"]
    assert update["agent"]["messages"][0]["role"] == "assistant"


def test_nodes_are_told(thread: VictimThread) -> None:
    events = list(
        thread.client.runs.stream(thread.id, "line", input="Go.", stream_mode=["custom", "updates", "values"])
    )
    told = [one.data for one in events if one.event == "custom"]
    assert [one["node_id"] for one in told if one["type"] == "multiagent_node_start"] == ["a", "b", "c"]
    assert [(one["node_id"], one["status"]) for one in told if one["type"] == "multiagent_node_stop"] == [
        (name, "completed") for name in "abc"
    ]
    assert {one["node"] for one in told if one["type"] == "text"} == {"a", "b", "c"}
    assert [next(iter(one.data)) for one in events if one.event == "updates"] == [*"aaabbbccc"]
    assert events[-1].event == "values"
    assert events[-1].data["text"] == "c is done."
