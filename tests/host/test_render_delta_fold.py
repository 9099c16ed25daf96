"""A delta channel of messages or of files is shown as its reducer makes it, and anything else is not guessed at."""

import json
from typing import Any

import pytest
from deepagents._messages_reducer import _messages_delta_reducer as reduce_messages
from deepagents.middleware.filesystem import _file_data_delta_reducer as reduce_files
from hypothesis import given
from hypothesis import strategies as some
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from agentvisor.host.render_delta_fold import folded

IDS = some.sampled_from(["a", "b", "c"])
TEXTS = some.text(max_size=3)
MESSAGES: some.SearchStrategy[BaseMessage] = (
    some.tuples(TEXTS, IDS | some.none()).map(lambda one: HumanMessage(one[0], id=one[1]))
    | some.tuples(TEXTS, IDS).map(lambda one: AIMessage(one[0], id=one[1]))
    | (IDS | some.just(REMOVE_ALL_MESSAGES)).map(lambda id_: RemoveMessage(id=id_))
)
FILES = some.dictionaries(IDS, some.none() | some.fixed_dictionaries({"content": some.text(), "modified_at": IDS}))


def shown(value: Any) -> Any:
    """As the host renders it."""
    return json.loads(json.dumps(value, default=lambda one: one.model_dump()))


@given(some.lists(some.lists(MESSAGES, min_size=1) | MESSAGES, min_size=1))
def test_messages_are_folded_as_their_reducer_does(writes: list[Any]) -> None:
    expected: list[BaseMessage] = reduce_messages([], writes)
    assert folded(None, shown(writes)) == shown(expected)


@given(some.lists(FILES.filter(bool), min_size=1), FILES)
def test_files_are_folded_as_their_reducer_does(writes: list[Any], seed: Any) -> None:
    before = reduce_files(None, [seed])
    assert folded(before or None, writes) == reduce_files(before, writes)


def test_a_snapshot_comes_before_what_was_written_since() -> None:
    first, second, third = (HumanMessage(text, id=text) for text in "abc")
    seed, written = shown([first, second]), shown([[RemoveMessage(id="a"), third]])
    assert [one["id"] for one in folded(seed, written)] == ["b", "c"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "seed, writes",
    [
        (None, [["left 1"], ["right 2"]]),
        (["text"], [shown([HumanMessage("x")])]),
        (None, [[{"type": "human", "content": "no message of LangChain's"}]]),
        (None, [{"path": {"content": "no file"}}]),
        (None, [{"a": 1}]),
        (None, [{"__type__": "missing"}]),
        (None, []),
        (3, [4]),
    ],
)
def test_what_is_of_neither_kind_is_left_to_its_agent(seed: Any, writes: list[Any]) -> None:
    assert folded(seed, writes) is None
