"""A reader goes on after any event: of thousands that came fast, and of a run whose agent was killed and came back."""

import random

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread, kill
from tests.flow.streaming import Reading, increasing

pytestmark = [pytest.mark.flow, pytest.mark.timeout(180)]

TOKENS = 5000


def path(thread: VictimThread, run_id: str) -> str:
    return f"/threads/{thread.id}/runs/{run_id}/stream"


def test_5000_fast_tokens_have_numbers_that_only_grow_and_each_is_a_place_to_go_on_at(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    given = {"wanted": 1, "each": TOKENS}
    run = thread.graph("ticking", given, stream_mode="custom")
    whole = Reading(thread.host, path(thread, run), after=-1).to_its_end()
    assert whole.of("custom") == [{"step": 0, "number": number} for number in range(TOKENS)]
    assert increasing(whole)
    places = [0, 1, TOKENS - 1, TOKENS, *random.Random(7).sample(range(TOKENS), 12)]
    for at in places:
        rest = Reading(thread.host, path(thread, run), after=whole.told[at].id, stream_mode="custom").to_its_end()
        assert rest.told == whole.told[at + 1 :]


def test_events_of_the_next_attempt_come_after_its_own_beginning_and_go_on_in_number(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    run = thread.graph("ticking", {"wanted": 2, "each": 4, "stops": [1]}, stream_mode=["custom", "updates"])
    live = Reading(thread.host, path(thread, run))
    live.until(6)
    before = Reading(thread.host, path(thread, run))
    before.until(6)
    before.leave()
    kill(thread.until_it("began 1"))
    live.until(2, "metadata")
    thread.tell("go1")
    live.to_its_end()
    assert thread.ended(run)["status"] == "success"
    assert increasing(live)
    second = [one.event for one in live.told].index("metadata", 1)
    assert [one.data["attempt"] for one in live.told if one.event == "metadata"] == [1, 2]
    # The step that was cut off is told again, by the attempt that does it again; the finished one is not.
    assert [one.data["number"] for one in live.told[:second] if one.event == "custom"] == [0, 1, 2, 3, 0, 1]
    assert [one.data["number"] for one in live.told[second:] if one.event == "custom"] == [0, 1, 2, 3]
    after = Reading(thread.host, path(thread, run), after=before.last_id).to_its_end()
    assert before.told + after.told == live.told
