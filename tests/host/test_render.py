"""A thread's states are shown as LangGraph itself sees them: every case is compared with `graph.get_state`."""

import dataclasses
import json
import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, StateSnapshot, interrupt
from tests.host.recording_saver import RecordingSaver

from agentvisor.core.ids import ROOT, CheckpointId, Namespace, ThreadId
from agentvisor.core.records import TaskWrites, Write
from agentvisor.core.store import Store
from agentvisor.host.render import ThreadStates, blobs_of_states

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    count: int
    log: Annotated[list[str], operator.add]


def ask(state: State) -> State:
    return {"log": [f"answer {interrupt({'question': 'sure?'})}"]}


def work(state: State) -> State:
    return {"count": state["count"] + 1, "log": ["worked"]}


def fail(state: State) -> State:
    raise ValueError("boom!")


def fan_out(state: State) -> list[Send]:
    return [Send("work", {"count": number}) for number in (1, 2)]


def graph_of(saver: RecordingSaver, *, second: Any = work) -> Any:
    graph = StateGraph(State)
    graph.add_node("work", work)
    graph.add_node("second", second)
    graph.add_edge(START, "work")
    graph.add_edge("work", "second")
    graph.add_edge("second", END)
    return graph.compile(checkpointer=saver)


def parallel(saver: RecordingSaver) -> Any:
    graph = StateGraph(State)
    graph.add_node("left", ask)
    graph.add_node("right", lambda _: {"log": ["right"]})
    graph.add_edge(START, "left")
    graph.add_edge(START, "right")
    return graph.compile(checkpointer=saver)


@pytest.fixture
def saver() -> RecordingSaver:
    return RecordingSaver()


def states(saver: RecordingSaver) -> ThreadStates:
    wanted = blobs_of_states(saver.store, saver.store.all_checkpoints())
    return ThreadStates(ThreadId("t"), saver.store, {key: saver.blobs[key] for key in wanted})


def latest(saver: RecordingSaver, **options: Any) -> dict[str, Any]:
    found = saver.store.get(ROOT)
    assert found is not None
    return dict(states(saver).state(found, live=True, **options))


def history(saver: RecordingSaver) -> list[dict[str, Any]]:
    found = [saver.store.get(ROOT, one.checkpoint_id) for one in saver.store.newest_first(ROOT)]
    return [dict(states(saver).state(one, live=False)) for one in found if one]


def expected(snapshot: StateSnapshot) -> dict[str, Any]:
    """What LangGraph's snapshot is in the HTTP API."""

    def address(config: Any) -> Any:
        if config is None:
            return None
        wanted = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")
        return {name: config["configurable"][name] for name in wanted if name in config["configurable"]}

    parent = snapshot.parent_config["configurable"]["checkpoint_id"] if snapshot.parent_config else None
    values = snapshot.values
    if isinstance(values, dict):
        # The empty list of a reducer that nothing has reached yet is known to the graph only.
        values = {name: value for name, value in values.items() if not (name == "log" and value == [])}
    return plain(
        {
            "values": values,
            "next": snapshot.next,
            "tasks": [
                {
                    "id": one.id,
                    "name": one.name,
                    "path": one.path,
                    "error": one.error,
                    "interrupts": one.interrupts,
                    "checkpoint": address(one.state) if isinstance(one.state, dict) else None,
                    "state": expected(one.state) if isinstance(one.state, StateSnapshot) else None,
                    "result": one.result,
                }
                for one in snapshot.tasks
            ],
            "metadata": snapshot.metadata,
            "created_at": snapshot.created_at,
            "checkpoint": address(snapshot.config),
            "parent_checkpoint": address(snapshot.parent_config),
            "interrupts": snapshot.interrupts,
            "checkpoint_id": snapshot.config["configurable"]["checkpoint_id"],
            "parent_checkpoint_id": parent,
        }
    )


def plain(value: Any) -> Any:
    def default(one: Any) -> Any:
        if hasattr(one, "model_dump"):
            return one.model_dump()
        if isinstance(one, BaseException):
            return repr(one)
        return {name: field for name, field in dataclasses.asdict(one).items() if field is not None or name == "value"}

    return json.loads(json.dumps(value, default=default))


def test_every_state_of_a_finished_run_is_langgraphs(saver: RecordingSaver) -> None:
    graph = graph_of(saver)
    graph.invoke({"count": 0, "log": ["start"]}, CONFIG)
    saver.project(graph, CONFIG)
    assert latest(saver) == expected(graph.get_state(CONFIG))
    assert history(saver) == [expected(one) for one in graph.get_state_history(CONFIG)]


def test_without_a_projection_values_and_next_come_from_the_channels(saver: RecordingSaver) -> None:
    graph = graph_of(saver)
    graph.invoke({"count": 0, "log": ["start"]}, CONFIG)
    shown = [(one["values"], one["next"]) for one in history(saver)]
    snapshots = [expected(one) for one in graph.get_state_history(CONFIG)]
    assert shown == [(one["values"], one["next"]) for one in snapshots]


def test_without_a_projection_packets_that_were_sent_come_next(saver: RecordingSaver) -> None:
    graph = StateGraph(State)
    graph.add_node("work", lambda state: {"log": [str(state["count"])]})
    graph.add_conditional_edges(START, fan_out, ["work"])
    compiled = graph.compile(checkpointer=saver)
    compiled.invoke({"count": 0}, CONFIG)
    snapshots = [expected(one) for one in compiled.get_state_history(CONFIG)]
    assert [one["next"] for one in history(saver)] == [one["next"] for one in snapshots]


def test_messages_are_shown_as_langgraph_dumps_them(saver: RecordingSaver) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda _: {"messages": [AIMessage("hello", id="2")]})
    graph.add_edge(START, "model")
    compiled = graph.compile(checkpointer=saver)
    compiled.invoke({"messages": [HumanMessage("hi", id="1")]}, CONFIG)
    assert latest(saver)["values"] == expected(compiled.get_state(CONFIG))["values"]


def test_a_question_that_waits_is_shown_until_it_is_answered(saver: RecordingSaver) -> None:
    graph = graph_of(saver, second=ask)
    graph.invoke({"count": 0}, CONFIG)
    saver.project(graph, CONFIG)
    waiting = latest(saver)
    assert waiting == expected(graph.get_state(CONFIG))
    assert waiting["next"] == ["second"]
    [question] = waiting["interrupts"]
    assert question["value"] == {"question": "sure?"}
    assert states(saver).interrupts() == {waiting["tasks"][0]["id"]: [question]}

    graph.invoke(Command(resume="yes"), CONFIG)
    saver.project(graph, CONFIG)
    assert latest(saver)["interrupts"] == []
    assert states(saver).interrupts() == {}
    assert history(saver) == [expected(one) for one in graph.get_state_history(CONFIG)]


def test_a_question_is_shown_without_a_projection(saver: RecordingSaver) -> None:
    graph = graph_of(saver, second=ask)
    graph.invoke({"count": 0}, CONFIG)
    shown, snapshot = latest(saver), expected(graph.get_state(CONFIG))
    assert shown["interrupts"] == snapshot["interrupts"]
    assert [(one["id"], one["name"]) for one in shown["tasks"]] == [
        (one["id"], one["name"]) for one in snapshot["tasks"]
    ]


def test_of_an_unfinished_super_step_only_what_is_not_done_comes_next(saver: RecordingSaver) -> None:
    graph = parallel(saver)
    graph.invoke({"count": 0, "log": ["start"]}, CONFIG)
    saver.project(graph, CONFIG)
    shown, snapshot = latest(saver), expected(graph.get_state(CONFIG))
    assert (shown["next"], shown["tasks"]) == (snapshot["next"], snapshot["tasks"])
    assert shown["next"] == ["left"]
    assert history(saver) == [expected(one) for one in graph.get_state_history(CONFIG)]


def test_a_failed_task_shows_its_error(saver: RecordingSaver) -> None:
    graph = graph_of(saver, second=fail)
    with pytest.raises(ValueError, match="boom"):
        graph.invoke({"count": 0, "log": ["start"]}, CONFIG)
    saver.project(graph, CONFIG)
    shown = latest(saver)
    assert shown["tasks"][0]["error"] == "ValueError('boom!')"
    assert shown == expected(graph.get_state(CONFIG))


def test_two_writes_of_a_task_to_one_channel_are_both_its_result(saver: RecordingSaver) -> None:
    graph = StateGraph(State)
    graph.add_node("work", lambda _: [Command(update={"log": ["a"]}), Command(update={"log": ["b"]})])
    graph.add_edge(START, "work")
    compiled = graph.compile(checkpointer=saver)
    compiled.invoke({"count": 0, "log": ["start"]}, CONFIG)
    saver.project(compiled, CONFIG)
    assert history(saver) == [expected(one) for one in compiled.get_state_history(CONFIG)]


def test_a_functional_agents_state_is_its_output(saver: RecordingSaver) -> None:
    @task
    def double(number: int) -> int:
        return 2 * number

    @entrypoint(checkpointer=saver)
    def agent(number: int) -> int:
        return double(number).result()

    agent.invoke(21, CONFIG)
    saver.project(agent, CONFIG)
    assert latest(saver)["values"] == expected(agent.get_state(CONFIG))["values"] == 42


def test_a_subgraph_that_waits_is_shown_within_its_task(saver: RecordingSaver) -> None:
    child = StateGraph(State)
    child.add_node("ask", ask)
    child.add_edge(START, "ask")
    graph = StateGraph(State)
    graph.add_node("child", child.compile())
    graph.add_edge(START, "child")
    compiled = graph.compile(checkpointer=saver)
    compiled.invoke({"count": 1, "log": ["start"]}, CONFIG)
    saver.project(compiled, CONFIG)

    assert latest(saver) == expected(compiled.get_state(CONFIG))
    nested, snapshot = latest(saver, subgraphs=True), expected(compiled.get_state(CONFIG, subgraphs=True))
    shown, known = nested["tasks"][0]["state"], snapshot["tasks"][0]["state"]
    assert nested["tasks"][0]["checkpoint"] is None
    same = ("values", "next", "interrupts", "metadata", "checkpoint")
    assert {name: shown[name] for name in same} == {name: known[name] for name in same}


def test_a_checkpoint_that_does_not_exist_has_an_empty_state() -> None:
    shown = ThreadStates(ThreadId("t"), Store(), {}).empty(checkpoint_id=CheckpointId("c"))
    assert shown["values"] == {}
    assert shown["checkpoint"] == {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c"}


def test_bytes_that_were_damaged_show_where_they_are(saver: RecordingSaver) -> None:
    graph = graph_of(saver)
    graph.invoke({"count": 0}, CONFIG)
    saver.project(graph, CONFIG)
    found = saver.store.get(ROOT)
    assert found is not None
    count, log = (found.checkpoint.channels[name] for name in ("count", "log"))
    assert count is not None
    assert log is not None
    saver.apply(
        TaskWrites(Namespace(""), found.checkpoint.checkpoint_id, "x", "", (Write(0, "log", "msgpack", b"\xc1", 99),))
    )
    shown = ThreadStates(ThreadId("t"), saver.store, {count: ("msgpack", b"\xc1")}).values(found.checkpoint)
    assert isinstance(shown, dict)
    assert [shown[name]["__type__"] for name in ("count", "log")] == ["corrupt", "missing"]
    json.dumps(latest(saver))
