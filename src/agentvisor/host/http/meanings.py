"""What fields and parameters mean that many requests share, for /openapi.json and the reference; by name, once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

OF_FIELDS: dict[str, str] = {
    "action": "`interrupt`: the run stops where it is. `rollback`: nothing of it is left.",
    "after": "The `next` of the page before.",
    "agent_id": "Only of this agent.",
    "as_node": "The node that seems to have written; found out where only one can be meant.",
    "assistant_id": "Name of an agent, or the id of its assistant.",
    "before": "Only what is older than this checkpoint: its id, or an address.",
    "cancel_on_disconnect": "Cancel the run when this caller goes away.",
    "changes": "Members of the object to set; its others stay.",
    "checkpoint": "A checkpoint, of the root or of a subgraph; without an id, that namespace's latest.",
    "checkpoint_during": "The old name of `durability`: true is `async`, false is `exit`.",
    "checkpoint_id": "A checkpoint of the thread; the latest where none is named.",
    "checkpoint_map": "Checkpoints of the graphs around a subgraph, by namespace.",
    "checkpoint_ns": "The namespace: empty is the root, `<parent>|<node>:<task_id>` a subgraph.",
    "command": "In the place of an input: an answer, an update, where to go.",
    "config": "LangGraph's config: `tags`, `recursion_limit`, `max_concurrency`, `configurable`.",
    "context": "What the graph finds as its runtime's context.",
    "depth": "How many levels of subgraphs below them.",
    "delete_threads": "Also the threads on which it has run last.",
    "description": "In words, for people.",
    "durability": "`sync`: a step waits until the last is durable. `async`: it does not. `exit`: only the end is kept.",
    "enabled": "Whether it is due at all.",
    "expected_revision": "409 where the entry has another one.",
    "filter": "By fields of the value: equal to this, or `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`.",
    "goto": "The node to go on with, or several; or sends.",
    "graph_id": "Name of the agent.",
    "id": "The caller's own number of the command, which the answer repeats.",
    "if_exists": "`raise`: 409. `do_nothing`: what is there comes back.",
    "if_not_exists": "Where there is no such thread: `create` it, or `reject`, 404.",
    "ids": "Only these threads.",
    "include": "`ttl`: also when its time is over.",
    "input": "What the agent begins with.",
    "interrupt_after": "Nodes after which to stop; `*` is all.",
    "interrupt_before": "Nodes before which to stop; `*` is all.",
    "item": "What to append.",
    "key": "The item's key in its namespace.",
    "last-event-id": "Go on after this event; `-`: from the first that is kept.",
    "limit": "How many at most.",
    "max_depth": "Cut namespaces after so many labels.",
    "metadata": "JSON of the caller's own, to be found by.",
    "method": "Which command.",
    "multitask_strategy": "While another run is at work: wait (`enqueue`), be refused, stop it, or undo it.",
    "name": "For people; several may have the same.",
    "namespace": "A list of labels; as a parameter, with dots between them.",
    "namespace_prefix": "Where to look: this namespace, and all below.",
    "namespaces": "Graphs whose events are wanted, with those below; all where none is named.",
    "offset": "How many to leave out first.",
    "on_disconnect": "When the caller goes away: the run goes on, or is cancelled.",
    "on_run_completed": "What becomes of the thread of each run: `delete` or `keep`.",
    "params": "What the command needs.",
    "prefix": "Only what begins so.",
    "recurse": "Also subgraphs of subgraphs.",
    "refresh_ttl": "Whether reading an item lets its time to live begin anew.",
    "resume": "The answer to what waits; or answers by the ids of interrupts.",
    "run_ids": "These runs of the thread.",
    "schedule": "Five fields of cron: minute, hour, day of month, month, day of week.",
    "select": "Show these fields only.",
    "sort_by": "The field to sort by.",
    "sort_order": "`asc` or `desc`.",
    "start": "The first item of a list that is shown, from 0.",
    "status": "Only with this status.",
    "stream_mode": "What is told of the run: one mode, or a list.",
    "stream_subgraphs": "Also tell what happens in subgraphs.",
    "subgraphs": "Show the states of subgraphs in their tasks.",
    "suffix": "Only namespaces that end so.",
    "thread_id": "Only of this thread.",
    "timezone": "A name of the IANA database; UTC when left out.",
    "update": "What to write into the state.",
    "updates": "What was written in this super-step, by node.",
    "value": "JSON.",
    "values": "What is written.",
    "version": "The number of the version.",
    "wait": "Answer once the run has ended.",
}
"""By the field's or parameter's name."""

_FILTERS = (
    "AgentSearch", "AssistantFilter", "AssistantSearch", "CronFilter", "CronSearch", "HistorySearch", "RunSearch",
    "ThreadFilter", "ThreadSearch", "VersionSearch",
)  # fmt: skip

IN_BODIES: dict[str, str] = {
    **dict.fromkeys((f"{body}.metadata" for body in _FILTERS), "Only what has these in its metadata."),
    **dict.fromkeys(("ThreadFilter.values", "ThreadSearch.values"), "Only threads whose values have these."),
    "AgentSearch.name": "Only agents of this name.",
    "CheckpointAddress.thread_id": "The thread; the one of the route where it is left out.",
    "CronPatch.assistant_id": "Name of an agent, or the id of its assistant; as it is, where it is left out.",
    "RunsCancel.thread_id": "The thread whose runs are meant.",
    "RunsCancel.status": "All runs with this status, in the place of ids.",
}
"""Of one body, where that means something else."""


def add_meanings(described: dict[str, Any]) -> None:
    """Say what a field or parameter means where its own declaration does not."""
    for body, schema in described["components"]["schemas"].items():
        for name, field in schema.get("properties", {}).items():
            _add(field, IN_BODIES.get(f"{body}.{name}") or OF_FIELDS.get(name))
    for operation in _operations(described):
        for kind in operation.get("requestBody", {}).get("content", {}).values():
            for name, field in kind["schema"].get("properties", {}).items():
                _add(field, OF_FIELDS.get(name))
        for parameter in operation.get("parameters", []):
            if "description" not in parameter.get("schema", {}) and parameter["in"] != "path":
                _add(parameter, OF_FIELDS.get(parameter["name"]))


def _add(field: dict[str, Any], meaning: str | None) -> None:
    if meaning:
        field.setdefault("description", meaning)


def _operations(described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for methods in cast("dict[str, dict[str, dict[str, Any]]]", described["paths"]).values():
        yield from methods.values()
