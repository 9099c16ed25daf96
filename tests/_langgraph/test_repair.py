"""A conversation with an unanswered tool call is valid when the model sees it, and finished siblings keep theirs."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from langgraph.prebuilt import create_react_agent
from langgraph.types import Send

from agentvisor.langgraph import RepairMiddleware, repair_hook, repair_messages

CONFIG: Any = {"configurable": {"thread_id": "t"}}


def calling(*ids: str, **more: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": id_} for id_ in ids], **more)


def answer(id_: str, text: str = "found") -> ToolMessage:
    return ToolMessage(text, tool_call_id=id_)


def shown(messages: Sequence[BaseMessage]) -> list[str]:
    return [f"tool {one.tool_call_id} {one.status}" if isinstance(one, ToolMessage) else one.type for one in messages]


def test_a_call_without_an_answer_gets_one_that_says_that_nobody_knows() -> None:
    asked = calling("a", "b", id="ai-1")
    history = [HumanMessage("hi"), asked, answer("a"), HumanMessage("and?")]
    fixed = repair_messages(history)
    assert shown(fixed) == ["human", "ai", "tool a success", "tool b error", "human"]
    stand_in = fixed[3]
    assert isinstance(stand_in, ToolMessage)
    assert "may or may not have taken effect" in str(stand_in.content)
    assert stand_in.name == "look"
    # The same again, so that a reducer that adds by id adds it once.
    assert stand_in.id == repair_messages(history)[3].id
    assert [one for one in fixed if one is not stand_in] == history


def test_a_call_whose_arguments_could_not_be_read_was_not_made() -> None:
    unreadable = AIMessage(
        "", invalid_tool_calls=[{"name": "look", "args": "{", "id": "a", "error": None, "type": "invalid_tool_call"}]
    )
    fixed = repair_messages([unreadable, HumanMessage("and?")])
    assert shown(fixed) == ["ai", "tool a error", "human"]
    assert "Not made" in str(fixed[1].content)


def test_a_call_without_an_id_is_left_as_it_is() -> None:
    history = [AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": None}]), HumanMessage("x")]
    assert repair_messages(history) == history


def test_the_text_can_be_ones_own() -> None:
    assert repair_messages([calling("a")], not_finished="unknown")[1].content == "unknown"


MESSAGES: st.SearchStrategy[BaseMessage] = st.one_of(
    st.lists(st.sampled_from("abc"), max_size=3, unique=True).map(lambda ids: calling(*ids)),
    st.sampled_from("abc").map(answer),
    st.sampled_from([HumanMessage("h"), SystemMessage("s")]),
)


@given(st.lists(MESSAGES, max_size=10))
def test_repairing_twice_changes_nothing(history: list[BaseMessage]) -> None:
    once = repair_messages(history)
    assert all(one is other for one, other in zip(once, repair_messages(once), strict=True))


# --- in graphs -------------------------------------------------------------------------------------------------------


class Strict(BaseChatModel):
    """Calls two tools at once, refuses a history as a provider does, and keeps what it was shown."""

    seen: list[list[BaseMessage]]

    @property
    def _llm_type(self) -> str:
        return "strict"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.seen.append(messages)
        assert repair_messages(messages) == messages, shown(messages)
        first = sum(isinstance(one, AIMessage) for one in messages) == 0
        reply = (
            AIMessage(
                "", tool_calls=[{"name": "quick", "args": {}, "id": "q"}, {"name": "stuck", "args": {}, "id": "s"}]
            )
            if first
            else AIMessage("done")
        )
        return ChatResult(generations=[ChatGeneration(message=reply)])


class Tools(InMemorySaver):
    """One finishes, the other ends the run once the first one's answer is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.finished = threading.Event()

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        super().put_writes(config, writes, task_id, task_path)
        if "quick is done" in repr(writes):
            self.finished.set()

    def quick(self) -> str:
        """Finish."""
        return "quick is done"

    def stuck(self) -> str:
        """Never finish."""
        assert self.finished.wait(5)
        raise KeyboardInterrupt


def of_create_agent(model: Strict, tools: Tools) -> Any:
    return create_agent(model, [tools.quick, tools.stuck], middleware=[RepairMiddleware()], checkpointer=tools)


def of_create_react_agent(model: Strict, tools: Tools) -> Any:
    return create_react_agent(model, [tools.quick, tools.stuck], pre_model_hook=repair_hook, checkpointer=tools)


def invoke(graph: Any, text: str) -> dict[str, Any]:
    return dict(graph.invoke({"messages": [("user", text)]}, CONFIG, durability="sync"))


def ainvoke(graph: Any, text: str) -> dict[str, Any]:
    return dict(asyncio.run(graph.ainvoke({"messages": [("user", text)]}, CONFIG, durability="sync")))


@pytest.mark.parametrize("call", [invoke, ainvoke])
@pytest.mark.parametrize("make", [of_create_agent, of_create_react_agent])
def test_the_next_run_sees_the_finished_answer_and_a_stand_in_and_stores_them(
    make: Callable[[Strict, Tools], Any], call: Callable[[Any, str], dict[str, Any]]
) -> None:
    model = Strict(seen=[])
    graph = make(model, Tools())
    with pytest.raises(KeyboardInterrupt):
        invoke(graph, "look twice")
    values = call(graph, "and?")
    expected = ["human", "ai", "tool q success", "tool s error", "human"]
    assert shown(model.seen[-1]) == expected
    assert shown(values["messages"]) == [*expected, "ai"]
    assert values["messages"][2].content == "quick is done"
    # Stored: the next run finds nothing to repair.
    assert shown(call(graph, "more")["messages"]) == [*expected, "ai", "human", "ai"]


def test_a_graph_of_ones_own_has_the_hook_as_a_node() -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("repair", repair_hook)
    builder.add_edge(START, "repair")
    builder.add_edge("repair", END)
    values = builder.compile().invoke({"messages": [calling("a"), HumanMessage("x")]})
    assert shown(values["messages"]) == ["ai", "tool a error", "human"]
    assert shown(builder.compile().invoke({"messages": [HumanMessage("x")]})["messages"]) == ["human"]


@pytest.mark.thorough
def test_without_langchain_the_rest_is_there_and_the_middleware_says_what_is_missing() -> None:
    program = """
import sys
sys.modules["langchain"] = None
sys.modules["langchain.agents"] = None
from agentvisor.langgraph import repair_hook, repair_messages
try:
    from agentvisor.langgraph import RepairMiddleware
except ImportError as error:
    assert "pip install langchain" in str(error), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.skipif(
    tuple(map(int, version("langgraph").split(".")[:3])) < (1, 2, 24),
    reason="LangGraph's own reducer for delta channels does not put messages in another order before",
)
def test_a_conversation_in_a_delta_channel_is_repaired_too() -> None:
    tools = Tools()

    class State(TypedDict):
        messages: Annotated[list[Any], DeltaChannel(_messages_delta_reducer)]

    def model(state: State) -> dict[str, Any]:
        first = not any(isinstance(one, AIMessage) for one in state["messages"])
        return {"messages": [calling("q", "s", id="ai-1") if first else AIMessage("done", id="ai-2")]}

    def route(state: State) -> Any:
        last = state["messages"][-1]
        return [Send(name, {"id": id_}) for name, id_ in (("quick", "q"), ("stuck", "s"))] if last.tool_calls else END

    def quick(_: Any) -> dict[str, Any]:
        tools.quick()
        return {"messages": [ToolMessage("quick is done", tool_call_id="q", id="t-q")]}

    def stuck(_: Any) -> dict[str, Any]:
        return {"messages": [ToolMessage(tools.stuck(), tool_call_id="s", id="t-s")]}

    builder = StateGraph(State)
    for name, node in (("repair", repair_hook), ("model", model), ("quick", quick), ("stuck", stuck)):
        builder.add_node(name, node)  # type: ignore[call-overload]
    builder.add_edge(START, "repair")
    builder.add_edge("repair", "model")
    builder.add_conditional_edges("model", route, ["quick", "stuck", END])
    for name in ("quick", "stuck"):
        builder.add_edge(name, "repair")
    graph: Any = builder.compile(checkpointer=tools)
    with pytest.raises(KeyboardInterrupt):
        graph.invoke({"messages": [HumanMessage("look", id="h-1")]}, CONFIG, durability="sync")
    values = graph.invoke({"messages": [HumanMessage("and?", id="h-2")]}, CONFIG, durability="sync")
    expected = ["human", "ai", "tool q success", "tool s error", "human", "ai"]
    assert shown(values["messages"]) == shown(graph.get_state(CONFIG).values["messages"]) == expected
