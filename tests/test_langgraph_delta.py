"""Graphs with delta channels, under pruning, forks and every durability: as LangGraph's own saver has them, in less."""

import random
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from tests.client.hosts import way_to
from tests.client.store_double import StoreDouble
from tests.langgraph_saver import double, transport, way

from agentvisor._langgraph import delta_names
from agentvisor.client.transport import Transport
from agentvisor.langgraph import AgentVisorCheckpointer

__all__ = ["double", "transport", "way"]

KEEP = 3
CONFIG: Any = {"configurable": {"thread_id": "t"}}


def extend(old: list[str], new: list[list[str]]) -> list[str]:
    return [*old, *(one for some in new for one in some)]


class State(TypedDict, total=False):
    items: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=5)]
    rare: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=50)]
    count: int


def left(state: State) -> Any:
    return {"items": [f"left {len(state['items'])}"]}


def right(state: State) -> Any:
    return {"items": [f"right {len(state['items'])}"], "count": state.get("count", 0) + 1}


def rarely(state: State) -> Any:
    return {"rare": [f"at {state['count']}"]} if state["count"] % 3 == 0 else {}


def builder() -> StateGraph[State]:
    graph = StateGraph(State)
    for node in (left, right, rarely):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "left")
    graph.add_edge(START, "right")
    graph.add_edge(["left", "right"], "rarely")
    graph.add_edge("rarely", END)
    return graph


def test_writes_to_delta_channels_are_state_from_the_first_super_step_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_names, "_names", set[str]())
    double = StoreDouble()
    with way_to(double, "socketpair") as transport:
        graph = builder().compile(checkpointer=AgentVisorCheckpointer(transport=transport))
        graph.invoke({"items": ["given"]}, CONFIG)
    writes = [write for request in double.asked("put_writes") for write in request.put_writes.writes]
    assert {write.channel for write in writes if write.is_state} == {"items"}
    assert {write.channel for write in writes if not write.is_state} >= {"count", "join:left+right:rarely"}


def test_a_name_is_known_from_counters_and_from_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_names, "_names", set[str]())
    with way_to(StoreDouble(), "socketpair") as transport:
        saver = AgentVisorCheckpointer(transport=transport)
        saver.get_delta_channel_history(config=CONFIG, channels=["asked"])
        one: Any = {"v": 4, "id": "1", "ts": "", "channel_values": {}, "channel_versions": {}, "versions_seen": {}}
        saver.put(CONFIG, one, {"counters_since_delta_snapshot": {"counted": (1, 1)}}, {})
    assert delta_names.delta_names() == {"asked", "counted"}


def test_a_thread_is_loaded_with_two_requests_however_long_its_history_is() -> None:
    double = StoreDouble()
    with way_to(double, "socketpair") as transport:
        graph = builder().compile(checkpointer=AgentVisorCheckpointer(transport=transport))
        for turn in range(6):
            graph.invoke({"items": [f"turn {turn}"]}, CONFIG)
        double.requests.clear()
        again = builder().compile(checkpointer=AgentVisorCheckpointer(transport=transport))
        again.invoke({"items": ["again"]}, CONFIG)
    kinds = [request.WhichOneof("kind") for request in double.requests]
    assert kinds.count("delta_history") == 1
    assert kinds.count("get") == 1


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("seed", range(3))
def test_forks_and_updates_under_pruning_are_as_with_langgraphs_own_saver(seed: int, durability: Any) -> None:
    chance = random.Random(seed)
    with way_to(StoreDouble(keep=KEEP), "socketpair") as transport:
        model = builder().compile(checkpointer=InMemorySaver())
        for step in range(14):
            # Now and then in a process that knows nothing yet.
            if step % 4 == 0:
                ours = builder().compile(checkpointer=AgentVisorCheckpointer(transport=transport))
            act = chance.choice(["invoke", "invoke", "invoke", "update", "fork", "replay"])
            at = chance.randrange(KEEP)
            result = [move(graph, act, at, step, durability) for graph in (ours, model)]
            assert result[0] == result[1], (step, act, at)
            states = [graph.get_state(CONFIG) for graph in (ours, model)]
            assert (states[0].values, states[0].next) == (states[1].values, states[1].next), (step, act, at)


def move(graph: Any, act: str, at: int, step: int, durability: Any) -> Any:
    """Do it to one of the graphs; what it answers that does not depend on ids."""
    past = [one.config for one in graph.get_state_history(CONFIG, limit=KEEP)]
    config = past[at % len(past)] if past else CONFIG
    match act:
        case "update":
            graph.update_state(config if step % 2 else CONFIG, {"items": [f"updated {step}"]}, as_node="left")
            return None
        case "fork":
            return graph.invoke({"items": [f"forked {step}"]}, config, durability=durability)
        case "replay" if past:
            return graph.invoke(None, config, durability=durability)
        case _:
            return graph.invoke({"items": [f"turn {step}"]}, CONFIG, durability=durability)


async def test_the_same_awaited() -> None:
    with way_to(StoreDouble(keep=KEEP), "socketpair") as transport:
        graphs = [
            builder().compile(checkpointer=saver)
            for saver in (AgentVisorCheckpointer(transport=transport), InMemorySaver())
        ]
        for turn in range(8):
            ours, theirs = [await graph.ainvoke({"items": [f"turn {turn}"]}, CONFIG) for graph in graphs]
            assert ours == theirs


class Rebuilt(TypedDict):
    items: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=4)]


def test_a_delta_channel_is_rebuilt_in_another_process_and_on_a_fork(transport: Transport) -> None:
    def graph() -> Any:
        builder = StateGraph(Rebuilt)
        builder.add_node("step", lambda state: {"items": [f"{len(state['items'])}"]})
        builder.add_edge(START, "step")
        return builder.compile(checkpointer=AgentVisorCheckpointer(transport=transport))

    expected: list[str] = []
    for turn in range(8):
        expected += [f"in {turn}", f"{len(expected) + 1}"]
        assert graph().invoke({"items": [f"in {turn}"]}, CONFIG)["items"] == expected
    states = list(graph().get_state_history(CONFIG))
    early = next(one for one in states if one.values.get("items") == expected[:6] and one.next == ())
    forked = graph().update_state(early.config, {"items": ["fork"]}, as_node="step")
    assert graph().get_state(forked).values["items"] == [*expected[:6], "fork"]
    assert states[0].values["items"] == expected
