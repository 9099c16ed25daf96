"""A Strands agent's tool charges once wherever its process dies; where nobody can tell, a person is asked (B5)."""

import pytest
from tests.flow.charging import KNOWN, UNKNOWN, answered_truly, charged, questions, storage
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]

TIMES = {"anew": 1, "bare": 1, "goes_on": 2}
"""Agents of agents/strands_charges.py, and how often they charge."""
ASKED = {"anew": 2, "bare": 3, "goes_on": 1}
"""How often they have asked their model when they wait for a person: one without our hooks once in vain."""


@pytest.mark.parametrize("place", [*KNOWN, *UNKNOWN])
@pytest.mark.parametrize("agent", TIMES)
def test_a_tool_charges_once_wherever_the_agent_dies(warm_victims: Project, agent: str, place: str) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    thread.tell("strike", place)
    run = thread.ended(thread.call(f"strands_charges:{agent}", "x"))
    endings = [one["ending"] for one in run["attempts"]]
    if place in UNKNOWN:
        assert endings == ["agent_signal", "paused"], run["error"]
        assert thread.status() == "interrupted"
        (asked,) = questions(thread)
        assert (asked["value"]["kind"], asked["value"]["key"]) == ("effect_unknown", "charge:plain")
        assert thread.did()["model asked"] == ASKED[agent]
        assert charged(thread, "plain") == [1 if place == "after effect" else 0]
        run = answered_truly(thread, "plain")
        endings = ["agent_signal", "completed"]
    assert (run["status"], endings) == ("success", ["agent_signal", "completed"]), run["error"]
    assert charged(thread, "plain") == [TIMES[agent]]
    assert thread.status() == "idle"
    assert storage(thread)["effects"]["count"] == TIMES[agent]
