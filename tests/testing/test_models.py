"""A scripted model says the same in whatever process it is asked, streamed or not, and is as strict as a provider."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import Agent as AdkAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from pydantic import BaseModel
from strands import Agent, tool

from agentvisor.testing import adk, call
from agentvisor.testing.langgraph import ScriptedChatModel
from agentvisor.testing.script import InvalidHistory, Reply, ScriptEnded
from agentvisor.testing.strands import ScriptedModel

SCRIPT: list[Reply] = [
    ["Let me look.", call("look", order="7"), call("look", order="8")],
    call("pay", order="7"),
    "It is on its way.",
]


LOOKS: list[Reply] = [["Let me look.", call("look", order="7"), call("look", order="8")], "Found both."]


def conversation(replies: int) -> list[BaseMessage]:
    """With so many replies of the script in it, each made by a model of its own, and all its calls answered."""
    messages: list[BaseMessage] = [HumanMessage("Where is it?")]
    for _ in range(replies):
        reply = ScriptedChatModel(SCRIPT).invoke(messages)
        messages += [reply, *(ToolMessage("ok", tool_call_id=str(one["id"])) for one in reply.tool_calls)]
    return messages


def test_the_place_in_the_script_is_the_place_in_the_conversation() -> None:
    said = [message for message in conversation(3) if isinstance(message, AIMessage)]
    assert [(one.text, [(each["name"], each["args"]) for each in one.tool_calls]) for one in said] == [
        ("Let me look.", [("look", {"order": "7"}), ("look", {"order": "8"})]),
        ("", [("pay", {"order": "7"})]),
        ("It is on its way.", []),
    ]
    ids = [str(each["id"]) for one in said for each in one.tool_calls]
    assert len(set(ids)) == 3


@pytest.mark.parametrize("place", range(3))
def test_streamed_it_says_the_same_piece_by_piece(place: int) -> None:
    messages = conversation(place)
    whole = ScriptedChatModel(SCRIPT).invoke(messages)
    chunks = list(ScriptedChatModel(SCRIPT).stream(messages))
    joined = AIMessageChunk(content="")
    for chunk in chunks:
        joined += chunk  # type: ignore[assignment]
    assert (joined.text, joined.tool_calls) == (whole.text, whole.tool_calls)
    assert len(chunks) > 1


def test_with_tools_and_asynchronously_it_is_the_same() -> None:
    model: Any = ScriptedChatModel(SCRIPT).bind_tools([])
    assert asyncio.run(model.ainvoke(conversation(2))).text == "It is on its way."


def test_two_scripts_have_no_call_id_in_common_and_one_has_the_same_in_every_process() -> None:
    def ids(script: Any) -> list[str]:
        return [str(one["id"]) for one in ScriptedChatModel(script).invoke([HumanMessage("Hi")]).tool_calls]

    one, other = ids([call("look_up"), "Yes."]), ids([call("look_up"), "No."])
    assert one == ids([call("look_up"), "Yes."]) != other
    assert one == ["call_1_1_e4172f23"]


def test_past_the_end_of_the_script_it_says_so() -> None:
    with pytest.raises(ScriptEnded, match="has 3 replies, and the conversation already holds 3"):
        ScriptedChatModel(SCRIPT).invoke([*conversation(3), HumanMessage("And?")])


def test_a_history_that_a_provider_would_refuse_is_refused() -> None:
    history = [*conversation(1)[:-1], HumanMessage("And?")]
    with pytest.raises(
        InvalidHistory, match=r"ai calls call_1_1_\w+ calls call_1_2_\w+, tool answers call_1_1_\w+, human"
    ):
        ScriptedChatModel(SCRIPT).invoke(history)
    assert ScriptedChatModel(SCRIPT, strict=False).invoke(history).tool_calls


# --- Google ADK ------------------------------------------------------------------------------------------------------


def adk_agent(script: list[Reply], looked: list[str]) -> AdkAgent:
    def look(order: str) -> str:
        """Look an order up."""
        looked.append(order)
        return "found"

    return AdkAgent(name="desk", model=adk.ScriptedModel(script), tools=[look])


def asked(agent: AdkAgent, sessions: InMemorySessionService, text: str) -> list[str]:
    """What the agent says in a new runner, which is what a new process has."""

    async def ask() -> list[str]:
        runner = Runner(app_name="app", agent=agent, session_service=sessions, auto_create_session=True)
        message = types.Content(role="user", parts=[types.Part(text=text)])
        said = [event async for event in runner.run_async(user_id="me", session_id="s", new_message=message)]
        return [part.text for event in said if event.content for part in event.content.parts or [] if part.text]

    return asyncio.run(ask())


def test_an_adk_agent_follows_the_script_from_process_to_process() -> None:
    sessions, looked = InMemorySessionService(), list[str]()
    assert asked(adk_agent(LOOKS, looked), sessions, "Where are they?") == ["Let me look.", "Found both."]
    assert sorted(looked) == ["7", "8"]
    more = [*LOOKS, call("look", order="9"), "That too."]
    assert asked(adk_agent(more, looked), sessions, "And 9?") == ["That too."]
    with pytest.raises(ScriptEnded):
        asked(adk_agent(more, looked), sessions, "And 10?")


def test_an_adk_history_that_a_provider_would_refuse_is_refused() -> None:
    calling = types.Part.from_function_call(name="look", args={})
    contents = [
        types.Content(role="user", parts=[types.Part(text="Where is it?")]),
        types.Content(role="model", parts=[calling, calling]),
        types.Content(role="user", parts=[types.Part.from_function_response(name="look", response={"result": "here"})]),
    ]

    async def ask(model: adk.ScriptedModel, *, stream: bool = False) -> list[Any]:
        return [one async for one in model.generate_content_async(LlmRequest(contents=contents), stream)]

    with pytest.raises(InvalidHistory, match="function_call"):
        asyncio.run(ask(adk.ScriptedModel(LOOKS)))
    (whole,) = asyncio.run(ask(adk.ScriptedModel(LOOKS, strict=False)))
    assert whole.content.parts[0].text == "Found both."
    contents[1].parts = [calling]
    streamed = asyncio.run(ask(adk.ScriptedModel(LOOKS), stream=True))
    assert [one.content.parts[0].text for one in streamed] == ["Found", " both.", "Found both."]
    assert [one.partial for one in streamed] == [True, True, None]


# --- Strands ---------------------------------------------------------------------------------------------------------


def agent(script: list[Reply], looked: list[str], **more: Any) -> Agent:
    @tool
    def look(order: str) -> str:
        """Look an order up."""
        looked.append(order)
        return "found"

    return Agent(model=ScriptedModel(script), tools=[look], callback_handler=None, **more)


def test_a_strands_agent_follows_the_script() -> None:
    looked: list[str] = []
    result = agent(LOOKS, looked)("Where are they?")
    assert sorted(looked) == ["7", "8"]
    assert str(result).strip() == "Found both."
    assert result.stop_reason == "end_turn"


def test_a_strands_agent_in_another_process_goes_on_in_the_script() -> None:
    first = agent(LOOKS, [])
    first("Where are they?")
    looked: list[str] = []
    second = agent([*LOOKS, call("look", order="9"), "That too."], looked, messages=first.messages)
    assert str(second("And 9?")).strip() == "That too."
    assert looked == ["9"]


def test_a_strands_history_that_a_provider_would_refuse_is_refused() -> None:
    messages: Any = [
        {"role": "user", "content": [{"text": "Where is it?"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "u1", "name": "look", "input": {}}}]},
        {"role": "user", "content": [{"text": "And?"}]},
    ]

    async def ask(model: ScriptedModel) -> list[Any]:
        return [event async for event in model.stream(messages)]

    with pytest.raises(InvalidHistory, match="toolUse"):
        asyncio.run(ask(ScriptedModel(LOOKS)))
    assert asyncio.run(ask(ScriptedModel(LOOKS, strict=False)))
    messages[2]["content"] = [{"toolResult": {"toolUseId": "u1", "status": "success", "content": [{"text": "here"}]}}]
    assert asyncio.run(ask(ScriptedModel(LOOKS)))


def test_a_strands_model_gives_structured_output() -> None:
    class Order(BaseModel):
        number: int

    async def ask() -> list[Any]:
        prompt: Any = [{"role": "user", "content": [{"text": "Which?"}]}]
        return [one async for one in ScriptedModel(['{"number": 7}']).structured_output(Order, prompt)]

    assert asyncio.run(ask()) == [{"output": Order(number=7)}]
