"""For how long an effect is one: a task's while it may run from its checkpoint, a plain agent's for ever."""

import pytest
from tests.flow.charging import again, charged, started, storage
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread, kill

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


def test_each_round_of_a_loop_has_its_own_effect(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    assert thread.ended(thread.graph("charges:loops", {}))["status"] == "success"
    assert thread.did()["charged loop"] == 3
    assert storage(thread)["effects"]["count"] <= 1, "the ones of finished super-steps are gone"


@pytest.mark.parametrize("agent", ["graph", "plain"])
def test_one_effect_although_the_budget_is_used_up_and_the_caller_starts_a_new_run(
    warm_victims: Project, agent: str
) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    what = "plain" if agent == "plain" else "node"
    thread.tell("slow", "1")
    run = started(thread, agent)
    for times in range(1, 5):
        kill(thread.until_it(f"paid {what}", times))
    assert thread.ended(run)["status"] == "error"
    thread.untell("slow")
    assert thread.ended(again(thread, agent))["status"] == "success"
    assert charged(thread, agent) == [1]


def test_an_effect_is_one_although_its_checkpoint_was_still_on_its_way(warm_victims: Project) -> None:
    # With "async", LangGraph does not wait for a checkpoint before it runs the tasks that follow.
    for place in ("before intent", "after done"):
        thread = VictimThread(warm_victims, warm_victims.hosts[0])
        thread.tell("strike", place)
        ended = thread.ended(started(thread, "graph", durability="async"))
        assert [one["ending"] for one in ended["attempts"]] == ["agent_signal", "completed"]
        assert charged(thread, "graph") == [1]


def test_where_no_checkpoint_is_stored_an_effect_is_refused(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    ended = thread.ended(started(thread, "graph", durability="exit"))
    assert (ended["status"], ended["error"]["error"]) == ("error", "InvalidInput")
    assert 'durability="exit"' in ended["error"]["message"]
    assert charged(thread, "graph") == [0]
