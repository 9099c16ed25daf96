"""What is kept of a conversation with the OpenAI Agents SDK, and which agent of it is told from what it is."""

from __future__ import annotations

import sys
from datetime import date
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("agents.run_state", reason="the OpenAI Agents SDK is not installed")

from openai.types.responses import ResponseFunctionToolCall

from agents import Agent, RunConfig, Runner, ToolOutputImage, function_tool, handoff
from agentvisor.core.errors import IncompatibleState, InvalidInput
from agentvisor.guest.runners.openai_agents_kept import KEY, LOST, Kept, kept_from, result_of, stored
from agentvisor.guest.runners.openai_agents_questions import check_approvals
from agentvisor.guest.runners.openai_agents_turn import Hooks, Stopped, Turn, reachable, recorded
from agentvisor.guest.telling import told_framework
from agentvisor.testing import call
from agentvisor.testing.openai_agents import ScriptedModel

CALL = {"type": "function_call", "call_id": "c", "name": "pay", "arguments": "{}"}


def makes() -> Agent[Any]:
    raise NotImplementedError


async def makes_later() -> Agent[Any]:
    raise NotImplementedError


def does(given: Any) -> Any:
    raise NotImplementedError


def test_an_agent_and_what_says_that_it_makes_one_are_the_sdks() -> None:
    assert [told_framework(one) for one in (Agent("a"), makes, makes_later)] == ["openai_agents"] * 3
    assert told_framework(does) == "function"


def test_an_agent_of_a_projects_own_package_named_agents_is_not_the_sdks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agents", ModuleType("agents"))
    own = type("Agent", (), {"__module__": "agents.agent", "__call__": lambda *_: None})
    assert told_framework(own()) == "function"


@pytest.mark.parametrize(
    "given, kept",
    [
        ("paid", "paid"),
        ({"paid": [1, None]}, {"paid": [1, None]}),
        (date(2026, 1, 2), "2026-01-02"),
        ((1, 2), "(1, 2)"),
        ({1: "a"}, "{1: 'a'}"),
        (ToolOutputImage(image_url="http://i"), {"type": "image", "image_url": "http://i"}),
    ],
)
def test_what_a_tool_returned_is_told_to_the_model_as_the_sdk_would(given: object, kept: object) -> None:
    assert result_of(given) == kept


def test_calls_that_are_left_behind_have_a_result_each() -> None:
    other = CALL | {"call_id": "d"}
    closed = Kept(items=["said"], response=[CALL, other], results={"c": "done"}).closed()
    assert closed[:3] == ["said", CALL, other]
    assert [(one["call_id"], one["output"]) for one in closed[3:]] == [("c", "done"), ("d", LOST)]  # type: ignore[call-overload,index]


def test_a_reply_with_calls_of_another_kind_is_left_out_and_those_of_the_provider_are_not_such() -> None:
    assert Kept(items=["said"], response=[CALL, {"type": "shell_call", "call_id": "s"}]).closed() == ["said"]
    assert len(Kept(items=["said"], response=[{"type": "web_search_call", "id": "w"}]).closed()) == 2


@pytest.mark.parametrize("answer", [True, False, {"approved": True}, {"approved": False, "message": "no"}])
def test_an_approval_is_taken(answer: Any) -> None:
    check_approvals(Kept(waiting={"c": {"kind": "confirmation"}}), {"c": answer})


@pytest.mark.parametrize("answer", [1, {"approved": "yes"}, {"approved": True, "args": {"amount": 2}}])
def test_an_approval_that_says_what_is_not_understood_is_none(answer: Any) -> None:
    with pytest.raises(InvalidInput, match="is no approval"):
        check_approvals(Kept(waiting={"c": {"kind": "confirmation"}}), {"c": answer})


def test_the_place_of_what_cannot_be_stored_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"conversation\[0\]\['content'\]"):
        stored([{"content": object()}], "conversation")


@pytest.mark.parametrize("saved", ["text", {"framework": KEY, "format": 99}, {"framework": "strands"}])
def test_what_another_version_has_saved_is_one_error(saved: object) -> None:
    with pytest.raises(IncompatibleState, match="start a new thread"):
        kept_from(saved)
    assert kept_from(Kept(run="r", items=["i"]).to_json()) == Kept(run="r", items=["i"])


async def nothing(kept: Kept) -> None:
    """Save it nowhere."""


def test_a_reply_that_this_sdk_cannot_read_is_one_error() -> None:
    turn = Turn(nothing, lambda: False)
    turn.goes_on(Kept(response=[{"type": "function_call", "call_id": 7}]))
    with pytest.raises(IncompatibleState, match="does not read the thread's last reply"):
        turn.given_again()


async def test_a_reply_that_was_kept_is_given_once_in_the_models_place() -> None:
    turn = Turn(nothing, lambda: False)
    turn.goes_on(Kept(response=[CALL]))
    plain = ScriptedModel([call("pay")])
    model = recorded(plain, turn)
    assert isinstance(model, ScriptedModel)
    asked: list[Any] = [None, "hello", None, [], None, [], None]
    replies = [(await model.get_response(*asked)).output[0] for _ in range(2)]
    assert isinstance(replies[0], ResponseFunctionToolCall)
    assert replies[0].call_id == "c"
    assert turn.kept.response == [replies[1].model_dump(mode="json", exclude_unset=True)] != [CALL]


async def test_where_the_host_is_leaving_the_model_is_not_asked_and_all_that_was_done_is_kept() -> None:
    saved = list[Kept]()

    async def save(kept: Kept) -> None:
        saved.append(kept)

    turn = Turn(save, lambda: True)
    turn.goes_on(Kept(run="r", items=["said"]))
    with pytest.raises(Stopped):
        await turn.begins("desk", ["said", CALL, "done"])
    assert saved == [Kept(run="r", agent="desk", items=["said", CALL, "done"])]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("how", ["run_llm_again", "stop_on_first_tool"])
async def test_whatever_was_kept_last_the_run_that_goes_on_with_it_has_the_same_conversation(
    how: Any, *, streamed: bool
) -> None:
    made = list[int]()

    saved = list[Kept]()

    async def run(begun: Kept) -> tuple[object, object]:
        async def save(kept: Kept) -> None:
            saved.append(kept)

        # A process has one run, and tools of its own.
        @function_tool
        def pay() -> dict[str, int]:
            """Pay."""
            made.append(1)
            return {"paid": len(made)}

        turn = Turn(save, lambda: False)
        turn.goes_on(begun)
        model = recorded(ScriptedModel([call("pay"), "Paid."]), turn)
        agent: Agent[Any] = Agent("desk", model=model, tools=[pay], tool_use_behavior=how)
        given: Any = begun.items
        options: Any = {"hooks": Hooks(turn), "run_config": RunConfig(tracing_disabled=True)}
        if not streamed:
            ended = await Runner.run(agent, given, **options)
            return ended.final_output, ended.to_input_list()
        result = Runner.run_streamed(agent, given, **options)
        async for _ in result.stream_events():
            pass
        return result.final_output, result.to_input_list()

    whole = await run(Kept(items=[{"role": "user", "content": "Pay."}]))
    assert len(made) == 1
    kept = saved[1:]  # with the result of the call
    assert [await run(one) for one in kept] == [whole] * len(kept)
    assert len(made) == 1


def test_handoffs_of_every_form_lead_to_agents_each_found_once() -> None:
    last: Agent[Any] = Agent("last")
    middle: Agent[Any] = Agent("middle", handoffs=[handoff(last)])
    first: Agent[Any] = Agent("first", handoffs=[middle, last])
    last.handoffs = [first]
    assert [one.name for one in reachable(first)] == ["first", "middle", "last"]
