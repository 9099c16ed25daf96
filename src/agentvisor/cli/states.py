"""States of a thread as the commands read them: of its root, or of a namespace below it."""

from __future__ import annotations

from agentvisor.cli.facts import fields, objects, text, thread_path
from agentvisor.cli.http import Host
from agentvisor.core.errors import NotFound
from agentvisor.core.ids import Namespace, without_tasks
from agentvisor.host.render_typed import Json

_MOST_SUBGRAPHS = 20
"""That are asked after: each is a request of its own."""


def newest(host: Host, thread: str, namespace: str, limit: int) -> list[dict[str, Json]]:
    """The latest states of a namespace, newest first. `NotFound` where a namespace that is named has none."""
    for within in _names(namespace):
        states = objects(host.get(f"{thread_path(thread)}/history", limit=limit, checkpoint_ns=within))
        if states:
            return states
    if namespace:
        raise NotFound(
            f"thread {thread} has no checkpoints in the namespace {namespace!r}: "
            f"`agentvisor threads history {thread}` names those that it has"
        )
    return []


def state_at(host: Host, thread: str, namespace: str, checkpoint: str) -> dict[str, Json]:
    """The state of a namespace at a checkpoint."""
    for within in _names(namespace):
        address: dict[str, Json] = {"checkpoint_ns": within, "checkpoint_id": checkpoint}
        state = fields(host.post(f"{thread_path(thread)}/state/checkpoint", {"checkpoint": address}))
        if state.get("metadata") or state.get("created_at"):
            return state
    below, option = (f" in the namespace {namespace!r}", f" --namespace '{namespace}'") if namespace else ("", "")
    listing = f"agentvisor threads history {thread}{option}"
    raise NotFound(f"thread {thread} has no checkpoint {checkpoint}{below}: `{listing}` lists them")


def subgraphs(host: Host, thread: str, *states: dict[str, Json]) -> list[dict[str, Json]]:
    """The latest checkpoint of each subgraph that tasks of these states have called, where it has any."""
    found = list[dict[str, Json]]()
    for namespace in called(*states)[:_MOST_SUBGRAPHS]:
        try:
            head = newest(host, thread, namespace, 1)[0]
        except NotFound:
            continue
        found.append(
            {"checkpoint_ns": namespace, "checkpoint_id": head["checkpoint_id"], "created_at": head["created_at"]}
        )
    return found


def called(*states: dict[str, Json]) -> list[str]:
    """Namespaces of the subgraphs that tasks of these states call, each once."""
    tasks = [task for state in states for task in objects(state.get("tasks"))]
    named = (text(fields(task.get("checkpoint")), "checkpoint_ns") for task in tasks)
    return [one for one in dict.fromkeys(named) if one]


def _names(namespace: str) -> list[str]:
    """A subgraph that keeps its state has it under its own name, whatever task a state shows it in."""
    return list(dict.fromkeys((namespace, without_tasks(Namespace(namespace)))))
