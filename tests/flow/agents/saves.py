"""Functions that the agent `calls` calls: what the checkpoint API and thread state do inside a run."""

import asyncio
import os
from collections.abc import Callable
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph

from agents.effects import effect
from agentvisor import checkpoint, thread_state
from agentvisor.core.errors import AgentVisorError
from agentvisor.langgraph import AgentVisorCheckpointer


def save(key: str, state: Any) -> str:
    return checkpoint.save(key, state)


def load(id: str = "") -> Any:
    return checkpoint.load(id)


def refused(what: str, *given: Any, **named: Any) -> list[str]:
    """What a function of either module raises: its class, whether it is a ValueError, its message."""
    module, _, name = what.partition(".")
    try:
        getattr({"checkpoint": checkpoint, "thread_state": thread_state}[module], name)(*given, **named)
    except AgentVisorError as error:
        return [type(error).__name__, str(isinstance(error, ValueError)), str(error)]
    return []


def every_way() -> dict[str, Any]:
    """Save, load and list, blocking and awaited."""

    async def awaited() -> list[Any]:
        second = await checkpoint.asave("plan", {"step": 2})
        return [second, await checkpoint.aload(), await checkpoint.aload(first), await checkpoint.alist("plan")]

    assert checkpoint.load() is None
    first = checkpoint.save("plan", {"step": 1})
    second, latest, old, listed = asyncio.run(awaited())
    third = checkpoint.save("notes", ["a", None, 1.5, True])
    return {
        "order": first < second < third,
        "latest": [latest, checkpoint.load("")],
        "old": old,
        "of key": checkpoint.load(key="plan"),
        "plan": [one.id for one in listed] == [second, first],
        "all": [one.key for one in checkpoint.list()],
        "newest": [one.id for one in checkpoint.list(limit=1)] == [third],
        "when": all(one.created_at.tzinfo is not None for one in checkpoint.list()),
    }


def state_every_way() -> dict[str, Any]:
    """All of thread state, blocking and awaited."""
    ts = thread_state

    async def awaited() -> list[Any]:
        await ts.aset("async", {"a": 1}, scope="s")
        await ts.aupdate("async", {"b": 2}, scope="s")
        await ts.aappend("log", "x", scope="s")
        await ts.aappend("log", "y", scope="s")
        entry = await ts.aentry("async", scope="s")
        assert entry is not None
        seen = [entry.value, await ts.aget("log", scope="s"), await ts.aitems("log", 1, scope="s")]
        seen.append(await ts.akeys(scope="s"))
        return [*seen, await ts.adelete("async", scope="s"), await ts.aget("async", "gone", scope="s")]

    revisions = [ts.set("k", 1, expected_revision=0), ts.set("k", [1, 2]), ts.append("k", 3), ts.append("k", {"n": 4})]
    entry = ts.entry("k")
    assert entry is not None
    return {
        "grows": revisions == sorted(set(revisions)) and entry.revision == revisions[-1],
        "list": entry.value,
        "items": [ts.items("k", 1), ts.items("k", 3), ts.items("k", 9), ts.items("none")],
        "get": [ts.get("none"), ts.get("none", "default")],
        "update": [ts.update("o", {"a": 1}) > 0, ts.update("o", {"b": [2]}) > 0, ts.get("o")],
        "keys": [ts.keys(), ts.keys("k"), ts.keys(scope="other")],
        "delete": [ts.delete("o"), ts.delete("o"), ts.keys()],
        "async": asyncio.run(awaited()),
    }


def stale(key: str) -> list[Any]:
    """A writer with a revision that has passed."""
    first = thread_state.set(key, "mine", expected_revision=0)
    thread_state.set(key, "theirs", expected_revision=first)
    refusals = [
        refused("thread_state.set", key, "late", expected_revision=first)[0],
        refused("thread_state.append", key, "late", expected_revision=first)[0],
        refused("thread_state.update", key, {"late": 1}, expected_revision=0)[0],
        refused("thread_state.delete", key, expected_revision=first)[0],
    ]
    return [refusals, thread_state.get(key)]


def append_many(key: str, count: int) -> int:
    for number in range(count):
        thread_state.append(key, {"number": number, "text": "something that was said " * 4})
    return len(thread_state.items(key))


def read_state(key: str) -> list[Any]:
    return thread_state.items(key)


def keeps(given: dict[str, int]) -> dict[str, Any]:
    """An event and a save for each step; goes on after the last step that is saved, and appends no event twice."""
    state: Any = checkpoint.load() or {"done": 0}
    while state["done"] < given["steps"]:
        number = state["done"] + 1
        if len(thread_state.items("events")) < number:
            thread_state.append("events", number)
            effect(f"appended {number}")
        state = {"done": number}
        checkpoint.save("progress", state)
        effect(f"saved {number}")
    return {
        "state": checkpoint.load(),
        "events": thread_state.get("events"),
        "saves": [checkpoint.load(one.id) for one in checkpoint.list("progress")],
    }


def fails_after(given: dict[str, int]) -> None:
    checkpoint.save("progress", given)
    thread_state.append("events", given)
    raise RuntimeError("after it was saved")


class Counted(TypedDict, total=False):
    count: int


def _count(state: Counted) -> Counted:
    checkpoint.save("beside", {"seen": state.get("count", 0)})
    thread_state.append("counts", state.get("count", 0))
    return {"count": state.get("count", 0) + 1}


def beside_a_graph() -> dict[str, Any]:
    """A graph whose node saves by itself: neither sees the other's checkpoints."""
    before = refused("checkpoint.load")
    saver = AgentVisorCheckpointer()
    graph = StateGraph(Counted).add_node("count", _count).add_edge(START, "count").compile(checkpointer=saver)
    for _ in range(2):
        graph.invoke({})
    config = graph.get_state({"configurable": {"thread_id": os.environ["AGENTVISOR_THREAD_ID"]}}).config
    graphs_id = config["configurable"]["checkpoint_id"]
    return {
        "before": before,
        "saved": checkpoint.load(),
        "counts": thread_state.get("counts"),
        "by id": refused("checkpoint.load", graphs_id),
        "namespaces": sorted({one.config["configurable"]["checkpoint_ns"] for one in saver.list(None)}),
        "namespace": _refusal(lambda: saver.get_tuple({"configurable": {"checkpoint_ns": "|save|beside"}})),
        "steps": [one.metadata.get("step") for one in saver.list(None)],
    }


def only_a_graph() -> list[list[str]]:
    graph = StateGraph(Counted).add_node("count", lambda _: {"count": 1}).add_edge(START, "count")
    graph.compile(checkpointer=AgentVisorCheckpointer()).invoke({})
    return [refused("checkpoint.load"), refused("checkpoint.load", "1ef00000-0000-6000-8000-000000000000")]


def _refusal(work: Callable[[], object]) -> str:
    try:
        work()
    except AgentVisorError as error:
        return error.message
    return ""


def not_json() -> list[list[str]]:
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]
    given = [{"rows": [1, {"when": object()}]}, {"a": {1, 2}}, float("nan"), {3: "three"}, deep, b"bytes"]
    found = [refused("checkpoint.save", "k", one) for one in given]
    found += [refused("thread_state.set", "k", {"f": [print]}), refused("thread_state.append", "k", {"x": {1}})]
    found += [refused("thread_state.update", "k", {"x": object()})]
    return found


def bad_names() -> list[list[str]]:
    found = [refused("checkpoint.save", key, 1) for key in ("", "k" * 257, 5, None, "\ud800")]
    found += [refused("checkpoint.load", 5), refused("checkpoint.list", limit=0)]
    found += [refused("thread_state.get", key) for key in ("", "k" * 257, 5)]
    found += [refused("thread_state.get", "k", scope="s" * 257), refused("thread_state.items", "k", -1)]
    found += [refused("thread_state.set", "k", 1, expected_revision=one) for one in (-1, True, "1")]
    return [
        *found,
        refused("checkpoint.load", thread_id="another"),
        refused("thread_state.get", "k", thread_id="other"),
    ]
