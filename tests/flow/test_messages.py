"""Whatever LangGraph's serde knows comes back after a kill as what it was, and is shown as plain JSON."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from tests.flow.conftest import Project, client_of

pytestmark = pytest.mark.flow

CONFIG = {"configurable": {"graph": "kinds:graph"}}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[dict[str, Any]]:
    """What is seen of a thread whose agent was killed once, and whose host was killed before the answer came."""
    folder: Path = tmp_path_factory.mktemp("kinds")
    project = Project(folder, temporal, "zygote", {"graph": "graphs.py:make"})
    host = project.host()
    try:
        client = client_of(host)
        thread = client.threads.create()["thread_id"]
        client.runs.wait(thread, "graph", input={}, config=CONFIG)
        (run,) = client.runs.list(thread)
        asked = client.threads.get_state(thread)
        host.kill()
        client = client_of(project.host())
        again = client.threads.get_state(thread)
        client.runs.wait(thread, "graph", command={"resume": "yes"}, config=CONFIG)
        yield {"run": run, "asked": asked, "again": again, "state": client.threads.get_state(thread)}
    finally:
        for one in project.hosts:
            one.stop()


def test_every_kind_of_value_survives_a_kill(told: dict[str, Any]) -> None:
    first, second = told["run"]["attempts"]
    assert first["ending"] == "agent_signal"
    assert second["attempt"] == 2
    assert told["asked"]["values"]["changed"] == []


def test_a_new_host_shows_the_same_state(told: dict[str, Any]) -> None:
    assert told["again"] == told["asked"]
    assert told["state"]["values"]["answer"] == "yes"


def test_messages_are_shown_with_all_their_fields(told: dict[str, Any]) -> None:
    system, human, asking, tool, answer = told["state"]["values"]["messages"]
    assert (system["type"], system["content"]) == ("system", "be brief")
    assert (human["type"], human["content"], human["name"]) == ("human", "what is 2+2?\x00é😀", "ann")
    assert asking["tool_calls"] == [
        {"name": "add", "args": {"a": 2, "b": [2.0, None]}, "id": "call-1", "type": "tool_call"}
    ]
    assert asking["usage_metadata"] == {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}
    assert (tool["type"], tool["tool_call_id"], tool["artifact"]) == ("tool", "call-1", {"raw": [4]})
    assert answer["content"] == [{"type": "text", "text": "four"}]


def test_other_kinds_are_shown_as_the_langgraph_server_shows_them(told: dict[str, Any]) -> None:
    values = told["state"]["values"]
    when = "2026-11-30T08:25:00.123456+00:00"
    kinds = values["kinds"]
    assert kinds["datetime"] == when
    assert kinds["date"] == "2026-11-30"
    assert kinds["set"] == [1]
    assert kinds["frozenset"] == ["a"]
    assert kinds["uuid"] == "00000000-0000-0000-0000-000000000007"
    assert kinds["path"] == "/tmp/x"
    assert kinds["nul"] == "a\x00b"
    assert kinds["big"] == 2**63
    assert kinds["nested"] == {"when": [when, {"point": {"x": 1, "y": 2.5}}]}
    assert values["ticket"]["title"] == "a\x00b"
    assert values["ticket"]["parts"] == [{"x": 1, "y": 2.0}]
    assert values["point"] == {"x": 3, "y": 4.5}


def test_a_question_may_hold_any_of_them(told: dict[str, Any]) -> None:
    (asked,) = told["again"]["interrupts"]
    assert asked["value"] == {"when": "2026-11-30T08:25:00.123456+00:00", "point": {"x": 5, "y": 6.0}}
