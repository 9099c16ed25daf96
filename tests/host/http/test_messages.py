"""A message that grows is what LangChain itself makes of the same chunks."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage, message_chunk_to_message

from agentvisor.host.http.messages import Accumulated


def events(*messages: BaseMessage) -> list[tuple[str, Any]]:
    accumulated = Accumulated()
    found: list[tuple[str, Any]] = []
    for message in messages:
        found += accumulated.add([json.loads(json.dumps(message.model_dump())), {"langgraph_node": "model"}])
    return found


def plain(message: BaseMessage) -> Any:
    return json.loads(json.dumps(message_chunk_to_message(message).model_dump()))


def test_a_message_is_announced_once_and_then_grows() -> None:
    assert [(name, data if name == "messages/metadata" else data[0]["content"]) for name, data in events(
        AIMessageChunk("he", id="1"), AIMessageChunk("llo", id="1")
    )] == [
        ("messages/metadata", {"1": {"metadata": {"langgraph_node": "model"}}}),
        ("messages/partial", "he"),
        ("messages/partial", "hello"),
    ]  # fmt: skip


def test_a_whole_message_is_complete_at_once() -> None:
    message = ToolMessage("3", tool_call_id="c", id="2")
    assert events(message)[1:] == [("messages/complete", [plain(message)])]


def test_the_finished_message_replaces_its_chunks() -> None:
    assert events(AIMessageChunk("he", id="1"), AIMessage("hello", id="1"))[-1] == (
        "messages/complete",
        [plain(AIMessage("hello", id="1"))],
    )


CHUNKS: list[list[AIMessageChunk]] = [
    [AIMessageChunk("a"), AIMessageChunk([{"type": "text", "text": "b", "index": 0}])],
    [
        AIMessageChunk([{"type": "text", "text": "a", "index": 0}]),
        AIMessageChunk([{"type": "text", "text": "b", "index": 0}]),
        AIMessageChunk([{"type": "text", "text": "c", "index": 1}]),
        AIMessageChunk("tail"),
    ],
    [
        AIMessageChunk(
            "", tool_call_chunks=[{"name": "add", "args": '{"a', "id": "c", "index": 0, "type": "tool_call_chunk"}]
        ),
        AIMessageChunk(
            "",
            tool_call_chunks=[
                {"name": None, "args": '": 1, "b": "x', "id": None, "index": 0, "type": "tool_call_chunk"}
            ],
            response_metadata={"model": "m", "model_provider": "p"},
        ),
        AIMessageChunk(
            "",
            tool_call_chunks=[
                {"name": None, "args": '"}', "id": None, "index": 0, "type": "tool_call_chunk"},
                {"name": "sub", "args": "{}", "id": "d", "index": 1, "type": "tool_call_chunk"},
            ],
            usage_metadata={
                "input_tokens": 1,
                "output_tokens": 2,
                "total_tokens": 3,
                "input_token_details": {"cache_read": 1},
            },
            response_metadata={"model_provider": "p"},
        ),
        AIMessageChunk(
            "", usage_metadata={"input_tokens": 0, "output_tokens": 5, "total_tokens": 5}, chunk_position="last"
        ),
    ],
    [
        AIMessageChunk("", additional_kwargs={"function_call": {"name": None, "arguments": "{"}}),
        AIMessageChunk("", additional_kwargs={"function_call": {"name": "f", "arguments": "}"}}),
    ],
]


@pytest.mark.parametrize("chunks", CHUNKS)
def test_every_step_is_langchains_sum(chunks: list[AIMessageChunk]) -> None:
    chunks = [chunk.model_copy(update={"id": "1"}) for chunk in chunks]
    shown = [data[0] for name, data in events(*chunks) if name == "messages/partial"]
    total = chunks[0]
    expected = [plain(total)]
    for chunk in chunks[1:]:
        total = total + chunk
        expected.append(plain(total))
    assert shown == expected


arguments = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200)
@given(st.dictionaries(st.text(max_size=3), arguments, max_size=3), st.integers(1, 7))
@pytest.mark.thorough
def test_arguments_of_a_tool_call_can_be_read_at_every_step_and_are_right_at_the_end(value: Any, step: int) -> None:
    text = json.dumps(value, ensure_ascii=False)
    pieces = [text[start : start + step] for start in range(0, len(text), step)]
    chunks = [
        AIMessageChunk(
            "",
            id="1",
            tool_call_chunks=[{"name": None, "args": piece, "id": None, "index": 0, "type": "tool_call_chunk"}],
        )
        for piece in pieces
    ]
    shown = [data[0] for name, data in events(*chunks) if name == "messages/partial"]
    assert all(len(one["tool_calls"]) == 1 for one in shown)
    assert shown[-1]["tool_calls"][0]["args"] == value


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
@pytest.mark.thorough
def test_whatever_a_guest_calls_a_message_is_survived(data: Any) -> None:
    accumulated = Accumulated()
    for _ in range(2):
        accumulated.add(data)
        accumulated.add([data, data])
        accumulated.add([{"type": "AIMessageChunk", "id": "1", "content": data, "tool_call_chunks": data}, data])
        accumulated.add([{"type": "AIMessageChunk", "id": "1", "usage_metadata": data, "x": data}, data])
