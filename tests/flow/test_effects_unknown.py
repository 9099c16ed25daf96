"""An effect of unknown outcome is never repeated blindly: a function, a policy or a person decides (B5)."""

import pytest
from tests.flow.charging import PLAIN, again, charged, questions, resumed, started, unknown
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread, kill
from tests.support.waiting_sync import until

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("agent", ["graph", "agraph", "plain", "plain_async"])
def test_a_policy_of_retry_does_it_again(warm_victims: Project, agent: str) -> None:
    thread, run = unknown(warm_victims, agent, policy="retry")
    assert thread.ended(run)["status"] == "success"
    assert charged(thread, agent) == [2]


@pytest.mark.parametrize("agent", ["graph", "agraph", "plain", "plain_async"])
def test_a_policy_of_fail_is_the_agents_error_until_somebody_decides(warm_victims: Project, agent: str) -> None:
    thread, run = unknown(warm_victims, agent, policy="fail")
    ended = thread.ended(run)
    assert (ended["status"], ended["error"]["error"]) == ("error", "UnknownOutcome")
    assert [one["ending"] for one in ended["attempts"]] == ["agent_signal", "agent_error"]
    assert "attempt 1 of run" in ended["error"]["message"]
    thread.tell("bank", "done")
    assert thread.ended(again(thread, agent))["status"] == "success"
    assert charged(thread, agent) == [1]


@pytest.mark.parametrize("agent", ["graph", "agraph", "plain", "plain_async"])
@pytest.mark.parametrize(
    "place, bank, times", [("after effect", "done", 1), ("before effect", "not done", 1), ("after effect", "", 1)]
)
def test_a_reconcile_function_that_can_tell_decides(
    warm_victims: Project, agent: str, place: str, bank: str, times: int
) -> None:
    thread, run = unknown(warm_victims, agent, place, bank=bank or "unknown")
    ended = thread.ended(run)
    assert thread.did()[f"asked the bank {'plain' if agent in PLAIN else 'node'}"] == 1
    assert charged(thread, agent) == [times]
    assert len(questions(thread)) == (0 if bank else 1)
    assert ended["status"] == "success"


def test_an_answer_that_decides_nothing_is_asked_again(warm_victims: Project) -> None:
    for agent in ("graph", "plain"):
        thread, run = unknown(warm_victims, agent)
        thread.ended(run)
        thread.ended(resumed(thread, agent, "yes, it did"))
        (asked,) = questions(thread)
        assert "yes, it did" in asked["value"]["error"]
        assert thread.ended(resumed(thread, agent, {"done": {"charge": "told"}}))["status"] == "success"
        assert thread.status() == "idle"
        assert charged(thread, agent) == [1]


def test_a_nodes_own_questions_get_their_own_answers(warm_victims: Project) -> None:
    thread, run = unknown(warm_victims, "asks")
    thread.untell("strike")
    thread.ended(run)
    thread.tell("strike", "after effect")
    for answer in ("one", {"done": "paid"}, "two"):
        ended = thread.ended(resumed(thread, "asks", answer))
    assert ended["status"] == "success", ended["error"]
    assert thread.values() == {"paid": "paid", "answers": ["one", "two"]}
    assert thread.did()["charged node"] == 1


def test_a_question_inside_an_effect_keeps_its_answer_from_the_next_one(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    thread.ended(thread.graph("charges:confirms", {}))
    for answer in ("surely", "five"):
        ended = thread.ended(resumed(thread, "confirms", answer))
    assert ended["status"] == "success", ended["error"]
    assert thread.values() == {"paid": {"sure": "surely"}, "answers": ["five"]}
    assert thread.did()["sent"] == 1


def test_two_tools_of_one_task_get_their_own_answers_whichever_asks_first(warm_victims: Project) -> None:
    for _ in range(3):
        thread = VictimThread(warm_victims, warm_victims.hosts[0])
        thread.tell("gated", "yes")
        run = started(thread, "tools")
        until(lambda thread=thread: {"tried one", "tried two"} <= set(thread.did()))
        kill(next(int(one["pid"]) for one in thread.effects() if one["what"] == "tried one"))
        thread.ended(run)
        # As if the bank had charged the first card, and not the second.
        truth = {"charge:one": {"done": {"charge": "one"}}, "charge:two": {"not_done": True}}
        thread.tell("gate")
        (asked,) = questions(thread)
        thread.ended(resumed(thread, "tools", {asked["id"]: truth[asked["value"]["key"]]}))
        (again_asked,) = questions(thread)
        assert '"effect"' in again_asked["value"]["how_to_answer"]
        for _ in range(4):
            if not (asked_now := questions(thread)):
                break
            (one,) = asked_now
            named = truth[one["value"]["key"]] | {"effect": one["value"]["effect"]}
            ended = thread.ended(resumed(thread, "tools", {one["id"]: named}))
        assert ended["status"] == "success", ended["error"]
        assert (thread.did()["charged one"], thread.did()["charged two"]) == (0, 1)
