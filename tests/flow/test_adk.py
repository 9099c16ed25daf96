"""Google ADK's agents on real hosts: they remember, ask, wait, die and go on; their session is the thread's."""

import asyncio
import json
import signal
from collections.abc import Generator
from typing import Any

import httpx
import pytest
from tests._adk.session_contract import LAWS, Law
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread, kill
from tests.support.temporal import TemporalProcess

from agentvisor.adk import AgentVisorSessionService

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]

AGENTS = ("chat", "refunds", "shipping", "sequence", "workflow", "failing", "charging", "by_hand", "mixed")
NAMES = {name: f"adk_shop.py:{name}" for name in AGENTS}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[Project]:
    """A running host with all the agents."""
    project = Project(tmp_path_factory.mktemp("adk"), temporal, "zygote", NAMES)
    host = project.host(FOLDER=str(project.folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTVISOR_ENDPOINT", host.url)
        yield project
    for one in project.hosts:
        one.stop()


def started(thread: VictimThread, agent: str, given: Any = None, **more: Any) -> str:
    return str(thread.client.runs.create(thread.id, agent, input=given, **more)["run_id"])


def run(thread: VictimThread, agent: str, given: Any = None, **more: Any) -> dict[str, Any]:
    ended = thread.ended(started(thread, agent, given, **more))
    assert ended["status"] == "success", (ended["error"], thread.told())
    return ended


def output(thread: VictimThread, run: dict[str, Any]) -> Any:
    return thread.client.runs.join(thread.id, run["run_id"])


def waiting(thread: VictimThread) -> list[dict[str, Any]]:
    return list(thread.client.threads.get_state(thread.id)["interrupts"])


def test_it_remembers_in_the_next_process(shop: Project) -> None:
    thread = VictimThread(shop, shop.hosts[0])
    first = run(thread, "chat", "I am Bob.")
    assert output(thread, first) == "Hello Bob."
    second = run(thread, "chat", {"messages": [{"role": "user", "content": "Who am I?"}]})
    assert output(thread, second) == "You are Bob."
    assert thread.did()["model asked 'Who am I?' after 2"] == 1
    assert len({one["pid"] for one in thread.effects()}) == 2
    values = thread.values()
    assert values["state"] == {"last": "Bob", "user:known": ["Bob"]}
    assert [one["text"] for one in values["said"]] == ["I am Bob.", "", "Hello Bob.", "Who am I?", "You are Bob."]


def test_an_answer_is_kept_beside_the_questions_of_a_tool_that_go_on_waiting(shop: Project) -> None:
    thread = VictimThread(shop, shop.hosts[0])
    run(thread, "mixed", "Ship 7, and look into 8.")
    (shipped,) = [one["id"] for one in waiting(thread) if '"ship"' in json.dumps(one)]
    run(thread, "mixed", command={"resume": {shipped: "it is there"}})
    for answer in ("yes", "really"):
        (left,) = waiting(thread)
        assert left["id"] != shipped, "it was answered"
        ended = run(thread, "mixed", command={"resume": {left["id"]: answer}})
    assert output(thread, ended) == "All is told."
    assert (waiting(thread), thread.status()) == ([], "idle")


@pytest.mark.parametrize("order", [1, -1])
def test_two_confirmations_are_answered_in_part_and_in_both_orders(shop: Project, order: int) -> None:
    thread = VictimThread(shop, shop.hosts[0])
    run(thread, "refunds", "Refund both.")
    asked = waiting(thread)[::order]
    assert thread.status() == "interrupted"
    assert {one["value"]["args"]["order"] for one in asked} == {"7", "8"}
    assert {(one["value"]["tool"]) for one in asked} == {"refund"}
    run(thread, "refunds", command={"resume": {asked[0]["id"]: True}})
    assert [one["id"] for one in waiting(thread)] == [asked[1]["id"]]
    assert thread.did()["refunded 7"] + thread.did()["refunded 8"] == 0, "the rest is waited for"
    ended = run(thread, "refunds", command={"resume": {asked[1]["id"]: {"confirmed": False}}})
    assert output(thread, ended) == "Both are settled."
    approved = asked[0]["value"]["args"]["order"]
    assert {what for what in thread.did() if what.startswith("refunded")} == {f"refunded {approved}"}
    assert waiting(thread) == []
    assert thread.status() == "idle"


def test_new_input_is_refused_while_a_question_waits_unless_it_is_given_up(shop: Project) -> None:
    thread = VictimThread(shop, shop.hosts[0])
    run(thread, "refunds", "Refund both.")
    with pytest.raises(httpx.HTTPStatusError) as refused:
        started(thread, "refunds", "Never mind.")
    assert refused.value.response.status_code == 409
    assert len(waiting(thread)) == 2
    body = {"assistant_id": "refunds", "input": "Never mind.", "on_interrupt": "abandon"}
    answer = httpx.post(f"{thread.host.url}/threads/{thread.id}/runs/wait", json=body, timeout=60)
    assert answer.json() == "Both are settled.", answer.text
    assert thread.did()["model asked 'Never mind.' after 1"] == 1
    assert (waiting(thread), thread.status()) == ([], "idle")
    assert not [what for what in thread.did() if what.startswith("refunded")]


def test_an_answer_that_does_not_fit_is_refused_and_the_question_waits_on(shop: Project) -> None:
    thread = VictimThread(shop, shop.hosts[0])
    run(thread, "refunds", "Refund both.")
    before = waiting(thread)
    refused = thread.ended(started(thread, "refunds", command={"resume": {before[0]["id"]: "maybe"}}))
    assert refused["status"] == "error"
    assert "does not fit" in refused["error"]["message"]
    assert waiting(thread) == before
    stale = {"assistant_id": "refunds", "command": {"resume": {"nothing": True}}}
    assert httpx.post(f"{thread.host.url}/threads/{thread.id}/runs", json=stale).status_code == 409
    answers = {one["id"]: True for one in before}
    assert output(thread, run(thread, "refunds", command={"resume": answers})) == "Both are settled."
    assert (thread.did()["refunded 7"], thread.did()["refunded 8"]) == (1, 1)


@pytest.mark.parametrize("agent", ["sequence", "workflow"])
def test_a_kill_in_the_second_agent_goes_on_there(shop: Project, agent: str) -> None:
    thread = VictimThread(shop, shop.hosts[0])
    current = started(thread, agent, "Pay order 7.")
    kill(thread.until_it("began paying 7"), signal.SIGKILL)
    thread.until_it("began paying 7", 2)
    thread.tell("gate")
    ended = thread.ended(current)
    assert ended["status"] == "success", (ended["error"], thread.told())
    assert [one["ending"] for one in ended["attempts"]] == ["agent_signal", "completed"]
    assert output(thread, ended) == "Paid."
    did = thread.did()
    assert (did["looked 7"], did["paid 7"], did["began paying 7"]) == (1, 1, 2)
    assert sum(count for what, count in did.items() if what.startswith("model")) == 4, did
    values = thread.values()
    assert [one["text"] for one in values["said"] if one["author"] == "user"] == ["Pay order 7."]
    assert values["state"]["order"] == "7"


def test_an_error_of_a_tool_is_the_runs_with_the_users_traceback_and_a_new_run_goes_on(shop: Project) -> None:
    thread = VictimThread(shop, shop.hosts[0])
    failed = started(thread, "failing", "Find it.")
    ended = thread.ended(failed)
    assert (ended["status"], ended["error"]) == ("error", {"error": "LookupError", "message": "no order 7"})
    assert len(ended["attempts"]) == 1
    lines = [json.loads(line) for line in thread.host.log.read_text().splitlines() if thread.id in line]
    (raised,) = [line for line in lines if "traceback" in line]
    assert raised["traceback"].startswith("Traceback")
    assert 'raise LookupError(f"no order {order}")' in raised["traceback"]
    assert "agentvisor/" not in raised["traceback"]
    assert "DynamicNodeFailError" not in raised["traceback"]
    thread.tell("repaired", "yes")
    assert output(thread, run(thread, "failing")) == "Found after all."
    assert thread.did()["tried 7"] == 2


def test_a_tool_asks_and_an_effect_of_unknown_outcome_is_decided_by_a_person(shop: Project) -> None:
    thread = VictimThread(shop, shop.hosts[0])
    run(thread, "charging", "Charge order 7.")
    (asked,) = waiting(thread)
    assert asked["value"] == "Charge order 7?"
    run(thread, "charging", command={"resume": {asked["id"]: "agreed"}})
    (unknown,) = waiting(thread)
    assert (unknown["value"]["kind"], unknown["value"]["key"]) == ("effect_unknown", "charge")
    ended = run(thread, "charging", command={"resume": {unknown["id"]: {"done": "charged by hand"}}})
    assert output(thread, ended) == "Charged."
    assert thread.did()["charged 7"] == 1
    texts = [one["text"] for one in thread.values()["said"]]
    assert texts == ["Charge order 7.", "", "Charged."]
    assert (waiting(thread), thread.status()) == ([], "idle")


def test_a_function_may_run_an_agent_with_the_session_service(shop: Project) -> None:
    thread = VictimThread(shop, shop.hosts[0])
    assert [output(thread, run(thread, "by_hand", text)) for text in ("a", "b")] == [2, 4]


def test_a_cancelled_run_leaves_a_thread_that_takes_new_input(shop: Project) -> None:
    thread = VictimThread(shop, shop.hosts[0])
    current = started(thread, "sequence", "Pay order 7.")
    thread.until_it("began paying 7")
    thread.client.runs.cancel(thread.id, current, wait=True)
    thread.tell("gate")
    ended = run(thread, "sequence", "Pay order 7 again.")
    assert output(thread, ended) == "Paid."
    assert thread.status() == "idle"


def test_what_it_says_is_streamed_in_order_and_word_by_word(shop: Project) -> None:
    thread = VictimThread(shop, shop.hosts[0])
    modes: list[Any] = ["messages-tuple", "updates", "custom", "values"]
    parts = list(thread.client.runs.stream(thread.id, "chat", input="I am Bob.", stream_mode=modes))
    words = [one.data[0]["content"] for one in parts if one.event == "messages" and one.data[0]["type"] != "ai"]
    assert words == ["Hello", " Bob."]
    told = [next(iter(one.data.items())) for one in parts if one.event == "updates"]
    assert [who for who, _ in told] == ["chat", "chat", "chat"]
    kinds = [next(iter(part)) for _, event in told for part in event["content"]["parts"]]
    assert kinds == ["function_call", "function_response", "text"]
    assert told[1][1]["actions"]["state_delta"] == {"last": "Bob", "user:known": ["Bob"]}
    assert [one.data for one in parts if one.event == "values"] == ["Hello Bob."]


def test_a_long_running_tool_is_answered_after_everything_was_restarted(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    own_project.names = {"shipping": NAMES["shipping"]}
    thread = VictimThread(own_project, own_project.host(FOLDER=str(own_project.folder)))
    run(thread, "shipping", "Ship order 7.")
    (asked,) = waiting(thread)
    assert asked["value"] == {"tool": "ship", "args": {"order": "7"}}
    temporal_process.kill()
    thread.host.kill()
    asyncio.run(temporal_process.start())
    thread.on(own_project.host(FOLDER=str(own_project.folder)))
    assert waiting(thread) == [asked]
    ended = run(thread, "shipping", command={"resume": {"delivered": "today"}})
    assert output(thread, ended) == "It is there."
    assert thread.did()["shipped 7"] == 1
    assert (waiting(thread), thread.status()) == ([], "idle")


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
async def test_the_law_of_session_services_holds_on_a_real_thread(law: Law, shop: Project) -> None:
    await law(AgentVisorSessionService(thread_id=f"sessions-{law.__name__}"))
