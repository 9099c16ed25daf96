"""What a client says to the LangGraph server and to a host of ours is answered alike, or the difference is listed."""

import asyncio
from pathlib import Path

import pytest
from tests.oracle.comparing import Lists, compare, lists
from tests.oracle.scenarios.all_of_them import SCENARIOS
from tests.oracle.servers import agentvisor, oracle
from tests.oracle.transcripts import Transcripts, both

pytestmark = [pytest.mark.flow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def heard(temporal: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Transcripts, Transcripts]:
    """Every scenario, told to both."""
    with (
        agentvisor(tmp_path_factory.mktemp("ours"), temporal) as ours,
        oracle(tmp_path_factory.mktemp("theirs")) as theirs,
    ):
        return asyncio.run(both(ours, theirs))


@pytest.fixture(scope="module")
def listed() -> Lists:
    return lists()


def test_every_scenario_ends_as_its_author_meant_with_the_langgraph_server(
    heard: tuple[Transcripts, Transcripts],
) -> None:
    assert {name: steps["does not end"] for name, steps in heard[1].items() if "does not end" in steps} == {}
    assert heard[1].keys() == SCENARIOS.keys()


@pytest.mark.parametrize("scenario", sorted(SCENARIOS))
def test_both_servers_answer_alike_or_the_difference_is_listed(
    scenario: str, heard: tuple[Transcripts, Transcripts], listed: Lists
) -> None:
    ours, theirs = (one[scenario] for one in heard)
    unlisted = [
        one for one in compare(scenario, ours, theirs) if listed.unlisted(one, ours.get(one.step.partition("/")[2]))
    ]
    assert not unlisted, "\n".join(["not in tests/oracle/differences.yaml:", *map(str, unlisted)])


def test_what_is_listed_still_occurs(heard: tuple[Transcripts, Transcripts], listed: Lists) -> None:
    for scenario, ours in heard[0].items():
        for one in compare(scenario, ours, heard[1][scenario]):
            listed.unlisted(one, ours.get(one.step.partition("/")[2]))
    assert [place for one in listed.differences for place in one.unmet] == [], "differences that are no more"
    assert [one.steps for one in listed.missing if not one.met] == [], "these are built: take the lines out"


def test_a_difference_that_is_not_listed_is_found(tmp_path: Path) -> None:
    theirs = {"step": {"returned": {"a": [1, {"b": 2}], "events": [{"event": "x"}]}}, "gone": {}}
    ours = {"step": {"returned": {"a": [1, {"b": 3}], "events": [{"event": "y"}]}}, "new": {}}
    found = [(one.place, one.ours, one.theirs) for one in compare("s", ours, theirs)]
    assert found == [
        ("s/step: returned.a.1.b", 3, 2),
        ("s/step: returned.events", ["y"], ["x"]),
        ("s/gone: ", "<absent>", {}),
        ("s/new: ", {}, "<absent>"),
    ]
    assert compare("s", theirs, theirs) == []
    assert all(lists().unlisted(one, {}) for one in compare("s", ours, theirs))
