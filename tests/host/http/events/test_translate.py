"""What an agent's process sends, in the words of the event protocol."""

from typing import Any

import pytest

from agentvisor.host.http.events.told import Told
from agentvisor.host.http.events.translate import Translator
from agentvisor.host.streams import METADATA

HERE = ("sub:t1",)


def told(*events: tuple[Any, ...], translator: Translator | None = None) -> list[tuple[str, list[str], Any]]:
    reader = translator or Translator("agent")
    return [
        (one.method, list(one.namespace), one.data)
        for mode, namespace, data in events
        for one in reader.event(mode, namespace, data)
    ]


def names(found: list[tuple[str, list[str], Any]]) -> list[str]:
    return [f"{method} {data['event']}" if method in ("lifecycle", "messages") else method for method, _, data in found]


def piece(text: str, **more: Any) -> list[Any]:
    about = {"langgraph_node": "talk", "langgraph_checkpoint_ns": "talk:t1"}
    return [{"type": "AIMessageChunk", "id": "m1", "content": text, **more}, about]


def beginning(id: str, name: str = "work", **more: Any) -> dict[str, Any]:
    return {"id": id, "name": name, "input": {}, "triggers": [], **more}


def end(id: str, name: str = "work", **more: Any) -> dict[str, Any]:
    return {"id": id, "name": name, "error": None, "result": {}, "interrupts": [], **more}


CHECKPOINT = {
    "config": {"configurable": {"checkpoint_id": "c2"}},
    "parent_config": {"configurable": {"checkpoint_id": "c1"}},
    "metadata": {"step": 1, "source": "loop", "run_id": "r"},
    "values": {"a": 1},
}

TABLE: dict[str, tuple[tuple[str, tuple[str, ...], Any], list[tuple[str, list[str], Any]]]] = {
    "an attempt": (
        (METADATA, (), {"run_id": "r", "attempt": 1}),
        [("lifecycle", [], {"event": "running", "graph_name": "agent"})],
    ),
    "values": (("values", HERE, {"a": 1}), [("values", ["sub:t1"], {"a": 1})]),
    "values of another kind": (("values", (), [1]), [("values", [], [1])]),
    "values with a question": (
        ("values", (), {"a": 1, "__interrupt__": [{"id": "i", "value": 1}]}),
        [("values", [], {"a": 1})],
    ),
    "a question alone": (("values", (), {"__interrupt__": [{"id": "i", "value": 1}]}), []),
    "updates": (("updates", (), {"work": {"a": 1}}), [("updates", [], {"work": {"a": 1}})]),
    "updates that ask": (("updates", (), {"__interrupt__": [{"id": "i", "value": 1}]}), []),
    "what an agent writes": (("custom", HERE, 7), [("custom", ["sub:t1"], {"payload": 7})]),
    "what it writes under a name": (
        ("custom", (), {"name": "progress", "payload": {"done": 1}}),
        [("custom", [], {"name": "progress", "payload": {"done": 1}})],
    ),
    "an object that has a name": (
        ("custom", (), {"name": "x", "other": 1}),
        [("custom", [], {"payload": {"name": "x", "other": 1}})],
    ),
    "a task": (("tasks", (), beginning("t1")), [("tasks", [], beginning("t1"))]),
    "a checkpoint": (
        ("checkpoints", (), CHECKPOINT),
        [("checkpoints", [], {"id": "c2", "step": 1, "source": "loop", "parent_id": "c1"})],
    ),
    "a tool": (
        ("tools", (), {"event": "tool-started", "tool_call_id": "c", "tool_name": "add"}),
        [("tools", [], {"event": "tool-started", "tool_call_id": "c", "tool_name": "add"})],
    ),
    "what people say": (("messages", (), [{"type": "human", "id": "h", "content": "hi"}, {}]), []),
    "debug": (("debug", (), {"type": "task"}), []),
    "a mode of a newer agent": (("later", (), {"a": 1}), []),
    "messages that are none": (("messages", (), "x"), []),
    "a task that is none": (("tasks", (), None), []),
}


@pytest.mark.parametrize("event, expected", TABLE.values(), ids=TABLE.keys())
def test_an_event_becomes(event: tuple[str, tuple[str, ...], Any], expected: list[tuple[str, list[str], Any]]) -> None:
    assert told(event) == expected


def test_a_message_begins_grows_and_ends() -> None:
    pieces = [piece("hel"), piece("lo", usage_metadata={"input_tokens": 1}), piece("", chunk_position="last")]
    found = told(*(("messages", (), one) for one in pieces))
    ids = {"message_id": "m1", "run_id": "m1"}
    assert [data for _, _, data in found] == [
        {"event": "message-start", "role": "ai", "id": "m1", "run_id": "m1"},
        {"event": "content-block-start", "index": 0, "content": {"type": "text", "text": ""}, **ids},
        {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "hel"}, **ids},
        {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "lo"}, **ids},
        {"event": "content-block-finish", "index": 0, "content": {"type": "text", "text": "hello"}, **ids},
        {"event": "message-finish", "usage": {"input_tokens": 1}, **ids},
    ]


def test_a_tool_call_grows_by_its_arguments_and_is_read_at_its_end() -> None:
    first = {"type": "tool_call_chunk", "id": "c1", "name": "add", "args": '{"a"', "index": 0}
    second = {"type": "tool_call_chunk", "id": None, "name": None, "args": ": 1}", "index": 0}
    pieces = [piece("", tool_call_chunks=[first]), piece("", tool_call_chunks=[second], chunk_position="last")]
    found = [data for _, _, data in told(*(("messages", (), one) for one in pieces))]
    assert found[1]["content"] == {"type": "tool_call_chunk", "id": "c1", "name": "add", "args": "", "index": 0}
    assert [one["delta"] for one in found if "delta" in one] == [
        {"type": "tool-call-delta", "args": '{"a"'},
        {"type": "tool-call-delta", "args": ": 1}"},
    ]
    assert found[-2]["content"] == {"type": "tool_call", "id": "c1", "name": "add", "args": {"a": 1}}


def test_arguments_that_are_no_object_make_an_invalid_call() -> None:
    chunk = {"type": "tool_call_chunk", "id": "c1", "name": "add", "args": '{"a"', "index": 0}
    found = told(("messages", (), piece("", tool_call_chunks=[chunk], chunk_position="last")))
    finished = found[-2][2]["content"]
    assert (finished["type"], finished["args"], finished["id"]) == ("invalid_tool_call", '{"a"', "c1")


def test_content_blocks_that_langchain_told_are_taken_as_they_are() -> None:
    blocks = [{"type": "reasoning", "reasoning": "hm", "index": 0}, {"type": "text", "text": "yes", "index": 1}]
    found = told(("messages", (), piece("ignored", content_blocks=blocks, chunk_position="last")))
    assert [data["delta"] for _, _, data in found if "delta" in data] == [
        {"type": "reasoning-delta", "reasoning": "hm"},
        {"type": "text-delta", "text": "yes"},
    ]


def test_a_message_that_came_in_pieces_is_not_told_again_as_a_whole() -> None:
    whole = [{"type": "ai", "id": "m1", "content": "hello"}, {}]
    found = told(("messages", (), piece("hello")), ("messages", (), whole), ("messages", (), whole))
    assert names(found)[-2:] == ["messages content-block-finish", "messages message-finish"]
    assert len(found) == 5


def test_a_message_of_a_framework_that_does_not_say_its_end_ends_with_its_task() -> None:
    found = told(("messages", (), piece("hel")), ("tasks", (), end("t0")), ("tasks", (), end("t1")))
    assert names(found) == [
        "messages message-start",
        "messages content-block-start",
        "messages content-block-delta",
        "tasks",
        "messages content-block-finish",
        "messages message-finish",
        "tasks",
    ]


def test_messages_that_are_written_at_once_are_told_apart() -> None:
    other = [{"type": "AIMessageChunk", "id": "m2", "content": "there"}, {}]
    found = told(("messages", (), piece("hello")), ("messages", (), other), ("messages", (), piece(" you")))
    assert [data.get("message_id", data.get("id")) for _, _, data in found] == ["m1"] * 3 + ["m2"] * 3 + ["m1"]


def test_a_result_of_a_tool_is_also_a_message_below_its_call() -> None:
    output = {"type": "tool", "id": "r1", "content": "3", "tool_call_id": "c1"}
    found = told(("tools", ("a:1",), {"event": "tool-finished", "tool_call_id": "c1", "output": output}))
    assert names(found)[0] == "tools"
    assert {tuple(namespace) for _, namespace, _ in found[1:]} == {("a:1", "tools:c1")}
    assert found[1][2] == {"event": "message-start", "role": "tool", "tool_call_id": "c1", "id": "r1"}
    assert found[-2][2]["content"] == {"type": "text", "text": "3"}


def test_a_subgraph_begins_with_its_first_task_and_ends_with_the_task_it_runs_in() -> None:
    found = told(
        ("tasks", (), beginning("t1", "sub")),
        ("tasks", HERE, beginning("t2")),
        ("tasks", HERE, end("t2")),
        ("tasks", (), end("t1", "sub")),
    )
    assert names(found) == ["tasks", "lifecycle started", "tasks", "tasks", "lifecycle completed", "tasks"]
    started = {"event": "started", "namespace": ["sub:t1"], "graph_name": "sub", "trigger_call_id": "t1"}
    assert found[1] == ("lifecycle", ["sub:t1"], started)
    assert found[4] == ("lifecycle", ["sub:t1"], {"event": "completed", "graph_name": "sub"})


@pytest.mark.parametrize(
    "how, status, error",
    [
        ({"error": "ValueError('boom')"}, "failed", "ValueError('boom')"),
        ({"error": {"error": "ValueError", "message": "boom"}}, "failed", "boom"),
        ({"interrupts": [{"id": "i", "value": 1}]}, "interrupted", None),
    ],
)
def test_a_subgraph_says_how_it_ended(how: dict[str, Any], status: str, error: str | None) -> None:
    found = told(("tasks", HERE, beginning("t2")), ("tasks", (), end("t1", "sub", **how)))
    data = next(data for method, _, data in found[2:] if method == "lifecycle")
    assert (data["event"], data.get("error")) == (status, error)


def test_an_agent_that_a_tool_has_called_says_which_call() -> None:
    call = beginning("t1", "tools", input={"tool_call": {"id": "call_1", "name": "task"}})
    inner = beginning("t2", metadata={"lc_agent_name": "researcher"})
    found = told(("tasks", (), call), ("tasks", ("tools:t1",), inner))
    data = found[1][2]
    assert (data["graph_name"], data["cause"]) == ("researcher", {"type": "toolCall", "tool_call_id": "call_1"})


def test_what_was_going_on_ends_with_the_run_the_deepest_first() -> None:
    translator = Translator("agent")
    told(
        ("tasks", HERE, beginning("t2", "deep")),
        ("tasks", ("sub:t1", "deep:t2"), beginning("t3")),
        translator=translator,
    )
    ends = [(list(one.namespace), one.data) for one in translator.end("failed", "boom")]
    assert ends == [
        (["sub:t1", "deep:t2"], {"event": "failed", "graph_name": "deep"}),
        (["sub:t1"], {"event": "failed", "graph_name": "sub"}),
        ([], {"event": "failed", "graph_name": "agent", "error": "boom"}),
    ]


def test_questions_are_told_once_at_the_end_where_they_were_asked() -> None:
    translator = Translator("agent")
    asked = {"__interrupt__": [{"id": "i1", "value": {"q": 1}}, {"id": "i2", "value": 2}]}
    assert told(("updates", HERE, asked), ("updates", (), asked), ("values", (), asked), translator=translator) == []
    assert [*translator.ended()] == [
        Told("input.requested", {"interrupt_id": "i1", "payload": {"q": 1}}, HERE, name="input|sub:t1|i1"),
        Told("input.requested", {"interrupt_id": "i2", "payload": 2}, HERE, name="input|sub:t1|i2"),
    ]


def test_a_further_attempt_ends_what_the_last_had_begun_and_is_seen() -> None:
    found = told(
        (METADATA, (), {"run_id": "r", "attempt": 1}),
        ("messages", (), piece("hel")),
        ("tasks", HERE, beginning("t2")),
        (METADATA, (), {"run_id": "r", "attempt": 2}),
        ("tasks", HERE, beginning("t2")),
    )
    assert names(found)[-4:] == ["messages error", "lifecycle running", "lifecycle started", "tasks"]
    assert found[-4][2]["code"] == "restarted"
    assert found[-3][2]["attempt"] == 2


def test_the_same_checkpoint_is_told_once() -> None:
    assert len(told(("checkpoints", (), CHECKPOINT), ("checkpoints", (), CHECKPOINT))) == 1


def test_two_readers_are_told_the_same() -> None:
    events = [(METADATA, (), {"attempt": 1}), ("messages", (), piece("a")), ("tasks", HERE, beginning("t2"))]
    assert told(*events) == told(*events)


def test_the_tree_has_every_graph_at_its_place() -> None:
    translator = Translator("agent")
    told(
        ("tasks", HERE, beginning("t2", "deep")),
        ("tasks", ("sub:t1", "deep:t2"), beginning("t3")),
        ("tasks", HERE, end("t2", "deep")),
        translator=translator,
    )
    assert translator.graphs.tree("agent", "running") == {
        "namespace": [],
        "status": "running",
        "graph_name": "agent",
        "children": [
            {
                "namespace": ["sub:t1"],
                "status": "started",
                "graph_name": "sub",
                "children": [{"namespace": ["sub:t1", "deep:t2"], "status": "completed", "graph_name": "deep"}],
            }
        ],
    }
