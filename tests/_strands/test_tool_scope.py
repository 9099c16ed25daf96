"""Code of a tool knows its tool use, in whatever way Strands runs it; and code outside of tools knows none."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from strands import Agent, tool
from strands.tools.executors import ConcurrentToolExecutor, SequentialToolExecutor
from tests.support.scripted import unmarked

from agentvisor.client.conversation import Conversation, Paused, _current, set_conversation
from agentvisor.client.tool_scope import scope
from agentvisor.strands import RepairHook, ToolScope
from agentvisor.testing import call
from agentvisor.testing.strands import ScriptedModel

SCRIPT = [[call("note", way="one"), call("note", way="two")], call("note", way="three"), "Noted."]
TOLD = {"one": "tool/call_1_1/", "two": "tool/call_1_2/", "three": "tool/call_2_1/"}


@pytest.fixture
def told() -> dict[str, str]:
    return {}


def of_thread(told: dict[str, str]) -> Any:
    @tool
    def note(way: str) -> str:
        """Note."""
        told[way] = scope()
        return way

    return note


def of_coroutine(told: dict[str, str]) -> Any:
    @tool
    async def note(way: str) -> str:
        """Note."""
        await asyncio.sleep(0)
        told[way] = await asyncio.to_thread(scope)
        return way

    return note


def of_generator(told: dict[str, str]) -> Any:
    @tool
    async def note(way: str) -> Any:
        """Note."""
        yield "begun"
        told[way] = scope()
        yield way

    return note


@pytest.mark.parametrize("executor", [ConcurrentToolExecutor, SequentialToolExecutor])
@pytest.mark.parametrize("make", [of_thread, of_coroutine, of_generator])
async def test_a_tool_knows_its_tool_use(told: dict[str, str], make: Callable[..., Any], executor: Any) -> None:
    def agent() -> Agent:
        return Agent(
            model=ScriptedModel(SCRIPT),
            tools=[make(told)],
            hooks=[ToolScope()],
            tool_executor=executor(),
            callback_handler=None,
        )

    agent()("Note it.")
    assert unmarked(told) == TOLD
    told.clear()
    await agent().invoke_async("Note it.")
    assert unmarked(told) == TOLD
    assert scope() == ""


def test_an_agent_without_the_hook_has_no_scope_of_its_own(told: dict[str, str]) -> None:
    Agent(model=ScriptedModel(SCRIPT), tools=[of_thread(told)], callback_handler=None)("Note it.")
    assert set(told.values()) == {""}


@pytest.mark.parametrize("hooks, inside", [([], "tool/call_1_1/"), ([ToolScope()], "tool/call_1_2/")])
async def test_an_agent_that_is_a_tool_belongs_to_the_tool_use_that_calls_it_unless_it_tells_its_own(
    told: dict[str, str], hooks: list[Any], inside: str
) -> None:
    inner = Agent(
        model=ScriptedModel([[call("note", way="x"), call("note", way="inner")], "Noted."]),
        tools=[of_coroutine(told)],
        hooks=hooks,
        name="inner",
        callback_handler=None,
    )
    outer = Agent(
        model=ScriptedModel([call("ask", input="it"), call("note", way="after"), "Noted."]),
        tools=[inner.as_tool(name="ask"), of_coroutine(told)],
        hooks=[ToolScope()],
        tool_executor=SequentialToolExecutor(),
        callback_handler=None,
    )
    await outer.invoke_async("Note it.")
    assert (unmarked(told["inner"]), unmarked(told["after"]), scope()) == (inside, "tool/call_2_1/", "")


def test_a_tool_that_code_calls_itself_belongs_to_where_the_code_is(told: dict[str, str]) -> None:
    agent = Agent(model=ScriptedModel([]), tools=[of_thread(told)], hooks=[ToolScope()], callback_handler=None)
    agent.tool.note(way="direct")
    assert told == {"direct": ""}


# --- a tool that asks ------------------------------------------------------------------------------------------------


@pytest.fixture
def asking() -> Any:
    """A conversation in which something was asked as soon as it is paused."""
    before = list(_current)
    conversation = Conversation(None, "run")  # type: ignore[arg-type]
    set_conversation(conversation)
    yield conversation
    _current[:] = before


@pytest.mark.parametrize("executor", [ConcurrentToolExecutor, SequentialToolExecutor])
@pytest.mark.parametrize("hook", [ToolScope, RepairHook])
async def test_when_a_tool_asks_the_agent_ends_and_its_tool_use_stays_pending(
    asking: Conversation, executor: Any, hook: Any
) -> None:
    ran: list[str] = []

    @tool
    def note(way: str) -> str:
        """Note."""
        ran.append(way)
        if way == "two":
            asking.is_paused = True
            raise Paused
        return way

    agent = Agent(
        model=ScriptedModel(SCRIPT), tools=[note], hooks=[hook()], tool_executor=executor(), callback_handler=None
    )  # fmt: skip
    with pytest.raises(Paused):
        await agent.invoke_async("Note it.")
    assert scope() == ""
    assert [message["role"] for message in agent.messages] == ["user", "assistant"]
    assert sorted(ran) == ["one", "two"]
