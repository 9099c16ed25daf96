"""What a checkpoint's tasks have done so far, read from their pending writes as LangGraph reads them.

The rules are those of `langgraph.pregel._task_status`: a task is finished once it wrote anything but control writes,
and the question it asked last waits for an answer as long as it is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from agentvisor.core import asking
from agentvisor.core.errors import Corrupt
from agentvisor.core.ids import ROOT, BlobKey
from agentvisor.core.records import Checkpoint, CheckpointTuple, ProjectedTask, TaskWrites, Write
from agentvisor.core.store import Store
from agentvisor.host.render_typed import Json, render
from agentvisor.protocol.compression import decompress

_ERROR, _INTERRUPT, _RETURN = "__error__", "__interrupt__", "__return__"
_CONTROL = frozenset({_ERROR, "__error_source_node__", _INTERRUPT, "__resume__", "__scheduled__"})
_NULL_TASK = "00000000-0000-0000-0000-000000000000"
"""Writes of this task are the caller's (a resume value, an update), not of a task that runs."""
Values = Mapping[BlobKey, tuple[str, bytes]]
"""Of blobs, by key: serde type and bytes, decoded."""

MAX_WRITE = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a super-step with what it wrote."""

    id: str
    name: str
    path: Json
    subgraph: str
    error: Json
    asked: Sequence[Json]
    finished: bool
    result: Json
    closed: bool = False
    """What it asks was given up since, or overdue."""

    def interrupts(self, *, live: bool) -> list[Json]:
        """The questions that it asked last; live: those that wait for an answer."""
        if not live:
            return list(self.asked)
        return [] if self.finished or self.closed else list(self.asked)


def tasks_of(store: Store, found: CheckpointTuple, blobs: Values) -> list[Task]:
    """The tasks of a checkpoint in the order of the graph: as projected, else as far as their writes tell."""
    key = found.checkpoint.key
    written = {one.task_id: one for one in found.pending if one.task_id != _NULL_TASK}
    projection = store.projections.get(key)
    outputs = store.channels.get(key.namespace)
    if projection is not None:
        projected = projection.tasks
    else:
        projected = tuple(ProjectedTask(one.task_id, _name_in(one.task_path), "[]", "") for one in written.values())
    closed = key.namespace == ROOT and asking.has_closed(store) and asking.head_of(store) == key.checkpoint_id
    return [_task(one, written.get(one.id), outputs, blobs, closed=closed) for one in projected]


def followers(
    store: Store,
    checkpoint: Checkpoint,
    tasks: Sequence[Task],
    blobs: Values,
    *,
    live: bool,
) -> list[str]:
    """The nodes that come next: as projected, else those whose trigger channels hold something."""
    projection = store.projections.get(checkpoint.key)
    if projection is not None and tasks:
        return [task.name for task in tasks if not (live and task.finished)]
    if projection is not None:
        return list(projection.next)
    finished = {task.name for task in tasks if live and task.finished}
    return [name for name in _triggered(checkpoint, blobs) if name not in finished]


SENT = "__pregel_tasks"
"""The channel of packets sent with Send."""


def _triggered(checkpoint: Checkpoint, blobs: Values) -> list[str]:
    """Nodes by the channels that trigger them: edges, the graph's start, packets sent with Send."""
    full = [name for name, key in checkpoint.channels.items() if key is not None]
    edges = sorted(name.removeprefix("branch:to:") for name in full if name.startswith("branch:to:"))
    start = ["__start__"] if "__start__" in full else []
    key = checkpoint.channels.get(SENT)
    packets = render(*blobs[key]) if key is not None and key in blobs else None
    sent = packets if isinstance(packets, list) else []
    return [*start, *edges, *(str(one["node"]) for one in sent if isinstance(one, dict) and "node" in one)]


def _task(
    projected: ProjectedTask,
    written: TaskWrites | None,
    outputs: Sequence[str] | None,
    blobs: Values,
    *,
    closed: bool,
) -> Task:
    writes = written.writes if written else ()
    output = [one for one in writes if one.channel not in _CONTROL]
    return Task(
        id=projected.id,
        name=projected.name,
        path=render("json", projected.path.encode()),
        subgraph=projected.subgraph,
        error=next((write_value(one, blobs) for one in writes if one.channel == _ERROR), None),
        asked=list(
            chain.from_iterable(_questions(write_value(one, blobs)) for one in writes if one.channel == _INTERRUPT)
        ),
        finished=bool(output),
        result=_result(output, outputs, blobs) if output else None,
        closed=closed,
    )


def _questions(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def _result(output: Sequence[Write], outputs: Sequence[str] | None, blobs: Values) -> Json:
    """What it wrote to the channels that are state; several writes to one are {"$writes": [...]}."""
    for one in output:
        if one.channel == _RETURN:
            return write_value(one, blobs)
    gathered: dict[str, list[Json]] = {}
    for one in output:
        if one.channel in outputs if outputs else not one.channel.startswith(("__", "branch:", "join:")):
            gathered.setdefault(one.channel, []).append(write_value(one, blobs))
    result: dict[str, Json] = {
        name: values[0] if len(values) == 1 else {"$writes": values} for name, values in gathered.items()
    }
    if outputs and len(outputs) == 1 and outputs[0].startswith("__"):
        return result.get(outputs[0])
    return result


def write_value(write: Write, blobs: Values) -> Json:
    if write.key is not None:
        found = blobs.get(write.key)
        return {"__type__": "missing", "key": write.key.hex()} if found is None else render(*found)
    try:
        data = decompress(write.data, size=min(write.size, MAX_WRITE)) if write.size else write.data
    except Corrupt as error:
        return {"__type__": "corrupt", "type": write.type, "size": len(write.data), "error": error.message}
    return render(write.type, data)


def _name_in(task_path: str) -> str:
    """The node in LangGraph's text of a task's path, which is `~__pregel_pull, node` for a node reached by an edge."""
    kind, _, rest = task_path.partition(", ")
    return rest if kind == "~__pregel_pull" else ""
