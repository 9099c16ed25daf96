"""Functions that the agent `calls` calls: what the checkpoint API and thread state do inside a run."""

import asyncio
import os
from typing import Any

from agentvisor import checkpoint, thread_state
from agentvisor.core.errors import AgentVisorError


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


def put_state(key: str, value: Any) -> int:
    return thread_state.set(key, value)


def get_state(key: str) -> Any:
    return thread_state.get(key)


def read_state(key: str) -> list[Any]:
    return thread_state.items(key)


def with_pid(what: Any) -> list[Any]:
    return [os.getpid(), what]
