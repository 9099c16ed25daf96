"""Repair as a node before the model: `pre_model_hook` of `create_react_agent`, or a node of the user's own graph."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import cast

from langchain_core.messages import BaseMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda

from agentvisor._langgraph.finished import Answers, afind_answers, find_answers
from agentvisor._langgraph.repair import repair_messages, unanswered

Update = dict[str, list[BaseMessage]]
CHANNEL = "messages"

REMOVE_ALL = "__remove_all__"
"""langgraph.graph.message.REMOVE_ALL_MESSAGES, without importing all of LangGraph for it."""


def repaired_state(messages: list[BaseMessage], answers: Answers) -> Update:
    """The update that puts the repaired conversation in the place of the present one; empty where that is in order."""
    fixed = repair_messages(messages, answers=answers)
    if fixed == messages:
        return {}
    # Answers belong into the middle, and LangGraph's reducer appends: so everything is written anew, in order.
    return {CHANNEL: [RemoveMessage(id=REMOVE_ALL), *fixed]}


def messages_of(state: object) -> list[BaseMessage]:
    """The conversation in a graph's state, whatever that is made of."""
    if isinstance(state, Mapping):
        return list(cast("Mapping[str, list[BaseMessage]]", state).get(CHANNEL, []))
    return list(cast("list[BaseMessage]", getattr(state, CHANNEL, [])))


def _repair(state: object, config: RunnableConfig) -> Update:
    messages = messages_of(state)
    return _for_model(messages, find_answers(config, CHANNEL, unanswered(messages)))


async def _arepair(state: object, config: RunnableConfig) -> Update:
    messages = messages_of(state)
    return _for_model(messages, await afind_answers(config, CHANNEL, unanswered(messages)))


def _for_model(messages: list[BaseMessage], answers: Answers) -> Update:
    update = repaired_state(messages, answers)
    # Always: create_react_agent keeps this channel, and would show the model what an earlier call has left there.
    shown = update[CHANNEL][1:] if update else messages
    return update | {"llm_input_messages": shown}


repair_hook: RunnableLambda[object, Update] = RunnableLambda(
    cast("Callable[[object, RunnableConfig], Update]", _repair),
    afunc=cast("Callable[[object, RunnableConfig], Coroutine[None, None, Update]]", _arepair),
    name="repair",
)
"""Makes the conversation in `messages` valid before the model sees it, and stores it so.

`create_react_agent(model, tools, pre_model_hook=repair_hook)`; or a node of your own graph that leads to the model's.
A finished tool's answer that LangGraph dropped, because new input came before its siblings had finished, is found
where it was stored; for the others a message of status "error" says that they did not finish.
"""
