"""What is shown of Strands' events is JSON, by named fields, in the forms that LangGraph's clients know."""

import json
from typing import Any

from strands import Agent, tool
from strands.interrupt import Interrupt
from strands.multiagent.base import NodeResult, Status
from tests.support.scripted import unmarked

from agentvisor._strands.events import Shown, to_json
from agentvisor.host.http.messages import Accumulated
from agentvisor.testing import call
from agentvisor.testing.strands import ScriptedModel


@tool
async def steps(note: str) -> Any:
    """Yield on the way."""
    yield {"at": note, "live": object()}
    yield f"{note} done"


async def events_of(agent: Agent) -> list[dict[str, Any]]:
    return [dict(event) async for event in agent.stream_async("Go.", invocation_state={"mine": object()})]


def shown(events: list[dict[str, Any]], shows: Shown | None = None) -> list[tuple[str, Any]]:
    shows = shows or Shown("agent", "r-1")
    return [(mode, json.loads(to_json(payload))) for event in events for mode, payload in shows.of(event)]


def scripted(*script: Any, **more: Any) -> Agent:
    return Agent(
        model=ScriptedModel(list(script)), tools=[steps, *more.pop("tools", ())], callback_handler=None, **more
    )


async def test_every_event_is_json_and_holds_named_fields_only() -> None:
    agent = scripted(["Well.", call("steps", note="a")], "Done.")
    told = shown(await events_of(agent))
    custom = [one for mode, one in told if mode == "custom"]
    types = "text tool_use message tool_stream tool_stream message text message"
    assert " ".join(one["type"] for one in custom) == types
    assert unmarked(custom[3]["tool_use"]) == {"toolUseId": "call_1_1", "name": "steps", "input": {"note": "a"}}
    assert custom[3]["data"]["at"] == "a"
    assert "object object" in custom[3]["data"]["live"]
    assert all(set(one) <= {"type", "text", "tool_use", "message", "data"} for one in custom)
    assert [list(one) for mode, one in told if mode == "updates"] == [["agent"]] * 3


async def test_chunks_add_up_to_the_messages() -> None:
    agent = scripted(["Let me see.", call("steps", note="a"), call("steps", note="b")], "All done.")
    whole = Accumulated()
    for mode, payload in shown(await events_of(agent)):
        if mode == "messages":
            whole.add(payload)
    said = list(whole.messages.values())
    assert [one["content"] for one in said] == ["Let me see.", "a done", "b done", "All done."]
    calls: Any = said[0]["tool_call_chunks"]
    assert [(one["name"], one["args"], unmarked(one["id"])) for one in calls] == [
        ("steps", '{"note": "a"}', "call_1_1"),
        ("steps", '{"note": "b"}', "call_1_2"),
    ]
    assert [one["type"] for one in said[1:3]] == ["tool", "tool"]
    assert len(whole.messages) == 4


async def test_an_agent_that_is_a_tool_is_shown_without_its_live_objects() -> None:
    inner = scripted(call("steps", note="deep"), "Inner.", name="inner")
    outer = scripted(call("inner", input="x"), "Done.", tools=[inner])
    told = shown(await events_of(outer), Shown("agent", "r-1", frozenset({"inner"})))
    streamed = [one["data"] for mode, one in told if mode == "custom" and one["type"] == "tool_stream"]
    types = "tool_use message tool_stream tool_stream message text message"
    assert " ".join(one["type"] for one in streamed) == types


def test_nodes_speak_at_once_and_are_told_apart() -> None:
    start = {"event": {"messageStart": {"role": "assistant"}}}
    events = [
        {"type": "multiagent_node_stream", "node_id": node, "event": event}
        for event in (start, {"data": "x", "agent": object()}, {"data": "y"})
        for node in ("a", "b")
    ]
    nested = {"type": "multiagent_node_stream", "node_id": "c", "event": events[2]}
    told = shown([*events, nested])
    ids = {(one[0]["id"], one[0]["content"], one[1]["langgraph_node"]) for mode, one in told if mode == "messages"}
    assert {id_.split("-")[2] for id_, _, _ in ids} == {"a", "b", "c/a"}
    assert {one["node"] for mode, one in told if mode == "custom"} == {"a", "b", "c/a"}


def test_nodes_are_told_by_their_fields() -> None:
    failed = NodeResult(result=ValueError("x"), status=Status.FAILED)
    told = shown(
        [
            {"type": "multiagent_node_start", "node_id": "a", "node_type": "agent", "live": object()},
            {"type": "multiagent_node_stop", "node_id": "a", "node_result": failed},
            {"type": "multiagent_handoff", "from_node_ids": ["a"], "to_node_ids": ["b"], "message": "Go on."},
            {"type": "multiagent_node_interrupt", "node_id": "b", "interrupts": [Interrupt("i", "n", b"\0")]},
            {"type": "multiagent_node_cancel", "node_id": "b", "message": "no"},
            {"init_event_loop": True, "agent": object()},
            {"start": True},
            {"force_stop": True, "force_stop_reason": "why"},
        ]
    )
    asked = {"id": "i", "name": "n", "reason": {"__bytes_encoded__": True, "data": "AA=="}}
    assert told == [
        ("custom", {"type": "multiagent_node_start", "node_id": "a", "node_type": "agent"}),
        ("custom", {"type": "multiagent_node_stop", "node_id": "a", "status": "failed"}),
        ("custom", {"type": "multiagent_handoff", "from_node_ids": ["a"], "to_node_ids": ["b"], "message": "Go on."}),
        ("custom", {"type": "multiagent_node_interrupt", "node_id": "b", "interrupts": [asked]}),
        ("custom", {"type": "multiagent_node_cancel", "node_id": "b", "message": "no"}),
        ("custom", {"type": "force_stop", "reason": "why"}),
    ]


def test_what_json_does_not_have_is_text() -> None:
    itself: list[Any] = []
    itself.append(itself)
    for value in (float("nan"), {1: object()}, {(1, 2): 3}, "\ud800", b"\0"):
        json.loads(to_json(value))
    assert json.loads(to_json({"a": b"\0"})) == {"a": {"__bytes_encoded__": True, "data": "AA=="}}
