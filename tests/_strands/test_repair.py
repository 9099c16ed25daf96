"""A Strands conversation with an unanswered tool use is valid when the model sees it; finished siblings keep theirs."""

import asyncio
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strands import Agent, tool
from strands.types.content import Message

from agentvisor.strands import RepairHook, repair_messages
from agentvisor.testing import call
from agentvisor.testing.script import InvalidHistory
from agentvisor.testing.strands import ScriptedModel


def using(*ids: str) -> Message:
    return {
        "role": "assistant",
        "content": [{"toolUse": {"toolUseId": id_, "name": "look", "input": {}}} for id_ in ids],
    }


def result(id_: str, text: str = "found", status: Any = "success") -> Any:
    return {"toolResult": {"toolUseId": id_, "status": status, "content": [{"text": text}]}}


def user(*blocks: Any) -> Message:
    return {"role": "user", "content": [{"text": one} if isinstance(one, str) else one for one in blocks]}


def shown(messages: list[Message]) -> list[Any]:
    """What is in each message, in short."""

    def short(block: Any) -> str:
        if "toolUse" in block:
            return f"use {block['toolUse']['toolUseId']}"
        if "toolResult" in block:
            return f"{block['toolResult']['status']} {block['toolResult']['toolUseId']}"
        return str(block["text"])

    return [[short(block) for block in message["content"]] for message in messages]


HISTORY = [user("hi"), using("a", "b"), user(result("a")), user("and?")]


def test_a_tool_use_without_a_result_gets_one_that_says_that_nobody_knows() -> None:
    fixed = repair_messages(HISTORY)
    assert shown(fixed) == [["hi"], ["use a", "use b"], ["success a", "error b"], ["and?"]]
    assert "may or may not have taken effect" in str(fixed[2])
    assert [fixed[0], fixed[1], fixed[3]] == [HISTORY[0], HISTORY[1], HISTORY[3]]


@pytest.mark.parametrize(
    "messages, becomes",
    [
        ([using("a"), user("and?")], [["use a"], ["error a"], ["and?"]]),
        ([using("a")], [["use a"], ["error a"]]),
        ([using("a"), user("and?"), user(result("a"))], [["use a"], ["success a"], ["and?"]]),
        ([using("a", "b"), user(result("a")), user(result("b"))], [["use a", "use b"], ["success a", "success b"]]),
        ([using("a", "b"), user(result("b"), "so?")], [["use a", "use b"], ["success b", "error a", "so?"]]),
        ([using("a"), user("so?", result("a"))], [["use a"], ["success a", "so?"]]),
        ([user(result("x")), user("hi", result("y"))], [["hi"]]),
        ([using("a"), user(result("a")), user(result("a", "again"))], [["use a"], ["success a"]]),
        ([using("a"), user(result("a")), using("a")], [["use a"], ["success a"], ["use a"], ["error a"]]),
    ],
)
def test_every_way_in_which_it_can_be_broken(messages: list[Message], becomes: list[Any]) -> None:
    assert shown(repair_messages(messages)) == becomes


def test_what_strands_puts_there_itself_says_that_it_may_have_taken_effect() -> None:
    of_strands = user(result("a", "Tool was interrupted.", "error"))
    fixed = repair_messages([using("a"), of_strands, user("and?")])
    assert "may or may not have taken effect" in str(fixed[1])
    assert repair_messages([using("a"), of_strands], results={"a": result("a")["toolResult"]})[1] == user(result("a"))


def test_a_tools_own_result_counts_before_one_that_repair_has_made() -> None:
    fixed = repair_messages([*repair_messages([using("a"), user("and?")]), user(result("a"))])
    assert shown(fixed) == [["use a"], ["success a"], ["and?"]]


BLOCKS = st.one_of(st.sampled_from(["x", "y"]), st.builds(result, st.sampled_from("abc")))
MESSAGES = st.lists(
    st.one_of(
        st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(lambda ids: using(*ids)),
        st.lists(BLOCKS, min_size=1, max_size=3).map(lambda blocks: user(*blocks)),
    ),
    max_size=8,
)


@given(MESSAGES)
def test_whatever_it_was_the_model_takes_it_and_repairing_twice_changes_nothing(messages: list[Message]) -> None:
    before = copy.deepcopy(messages)
    fixed = repair_messages(messages)
    assert messages == before
    ScriptedModel(["Yes."] * 9)._said(fixed)
    again = repair_messages(fixed)
    assert len(again) == len(fixed)
    assert all(one is other for one, other in zip(again, fixed, strict=True))


# --- in an agent -----------------------------------------------------------------------------------------------------


def agent_of(messages: list[Message], *hooks: Any, tools: Any = ()) -> Agent:
    model = ScriptedModel([[call("quick"), call("stuck")], "Then I will look.", "Yes."])
    return Agent(
        model=model, messages=copy.deepcopy(messages), hooks=[*hooks], tools=[*tools], callback_handler=None
    )  # fmt: skip


def test_without_repair_the_model_refuses() -> None:
    with pytest.raises(InvalidHistory):
        agent_of(HISTORY)("really?")


def test_the_model_of_an_agent_sees_a_valid_conversation_and_it_stays_so() -> None:
    agent = agent_of(HISTORY, RepairHook())
    agent("really?")
    assert shown(agent.messages)[2:] == [["success a", "error b"], ["and?"], ["really?"], ["Then I will look."]]
    kept = list(agent.messages)
    agent("And?")
    assert all(one is other for one, other in zip(kept, agent.messages, strict=False))


async def test_a_finished_sibling_of_a_tool_that_was_cut_off_keeps_its_result() -> None:
    began, forever = asyncio.Event(), asyncio.Event()

    @tool
    async def quick() -> str:
        """Quick."""
        return "done"

    @tool
    async def stuck() -> str:
        """Stuck."""
        await asyncio.sleep(0)
        began.set()
        await forever.wait()
        return "never"

    agent = agent_of([], RepairHook(), tools=[quick, stuck])
    running = asyncio.create_task(agent.invoke_async("Do both."))
    await asyncio.wait_for(began.wait(), 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await agent.invoke_async("And?")
    _, called, results, *_ = agent.messages
    assert len(called["content"]) == 2
    quick_result, stuck_result = [block["toolResult"] for block in results["content"]]
    assert (quick_result["status"], quick_result["content"]) == ("success", [{"text": "done"}])
    assert stuck_result["status"] == "error"
    assert "may or may not" in str(stuck_result)


def test_a_pending_tool_that_is_run_again_is_not_repaired_away() -> None:
    ran: list[str] = []

    @tool
    def look() -> str:
        """Look."""
        ran.append("look")
        return "found it"

    agent = agent_of([user("hi"), using("a")], RepairHook(), tools=[look])
    agent(None)
    assert ran == ["look"]
    assert shown(agent.messages)[2] == ["success a"]
