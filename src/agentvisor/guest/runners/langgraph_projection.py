"""What only the running graph knows of a checkpoint, and the host shows: which nodes come next, and as which tasks.

It is read off pregel's "checkpoints" and "tasks" streams and never holds a value: the host has those as blobs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import cast

from langgraph.types import PregelTask, StateSnapshot

from agentvisor.protocol.v1.store_pb2 import ProjectedTask, Projection, StoreReply, StoreRequest

PULL = "__pregel_pull"
PUSH = "__pregel_push"

Submit = Callable[[StoreRequest], Future[StoreReply]]


class Projector:
    """Sends a projection for each checkpoint, without waiting; `settled` waits for all of them."""

    def __init__(self, submit: Submit, root_channels: Iterable[str]) -> None:
        self._submit = submit
        self._root_channels = set(root_channels)
        self._sent_channels: dict[tuple[str, ...], set[str]] = {}
        self._held: dict[tuple[str, ...], Projection] = {}
        self._open: set[Future[StoreReply]] = set()
        self.next: list[str] | None = None
        """What the root graph would run next, by its latest checkpoint; None before the first."""

    def checkpoint(self, namespace: tuple[str, ...], payload: Mapping[str, object]) -> None:
        """Take a "checkpoints" payload. It is held until its tasks, which follow at once, have said what they are."""
        self.release()
        config = cast("Mapping[str, Mapping[str, str]]", payload["config"])["configurable"]
        tasks = cast("list[Mapping[str, object]]", payload["tasks"])
        upcoming = cast("list[str]", payload["next"])
        if not namespace:
            self.next = upcoming
        self._held[namespace] = Projection(
            namespace=config.get("checkpoint_ns", ""),
            checkpoint_id=config["checkpoint_id"],
            next=upcoming,
            tasks=[_task(task) for task in tasks],
            has_tasks=True,
            channels=self._new_channels(namespace, payload["values"]),
        )

    def stands(self, state: StateSnapshot, channels: Iterable[str]) -> None:
        """Take the root's state, where the run stops without a stream that tells of it."""
        self.next = list(state.next)
        checkpoint_id = cast("str", state.config.get("configurable", {})["checkpoint_id"])
        self._send(projection_of("", checkpoint_id, state, channels))

    def task(self, namespace: tuple[str, ...], payload: Mapping[str, object]) -> None:
        """Take a "tasks" payload: the start of a task says what triggered it."""
        projection = self._held.get(namespace)
        triggers = cast("list[str] | None", payload.get("triggers"))
        if projection is None or triggers is None or PUSH not in triggers:
            return
        # Sent tasks (Send) come first, in the order of their sending.
        for index, task in enumerate(projection.tasks):
            if task.id == payload["id"]:
                task.path = json.dumps([PUSH, index, False])

    def release(self) -> None:
        """Send what is held."""
        held, self._held = self._held, {}
        for projection in held.values():
            self._send(projection)

    def _send(self, projection: Projection) -> None:
        future = self._submit(StoreRequest(project=projection))
        self._open.add(future)
        # What became of it is nobody's concern: a host that refuses this refuses the checkpoint too.
        future.add_done_callback(self._open.discard)

    def open(self) -> list[Future[StoreReply]]:
        """Return the projections that were not acknowledged yet."""
        return list(self._open)

    def _new_channels(self, namespace: tuple[str, ...], values: object) -> list[str]:
        """The namespace's state channels, where they are more than was sent; a subgraph's are known by its values."""
        present = set(cast("dict[str, object]", values)) if isinstance(values, dict) else set[str]()
        sent = self._sent_channels.setdefault(namespace, set())
        channels = sent | (present if namespace else self._root_channels)
        if channels == sent:
            return []
        self._sent_channels[namespace] = channels
        return sorted(channels)


def _task(task: Mapping[str, object]) -> ProjectedTask:
    state = cast("Mapping[str, Mapping[str, str]] | None", task.get("state"))
    return ProjectedTask(
        id=cast("str", task["id"]),
        name=cast("str", task["name"]),
        path=json.dumps([PULL, task["name"]]),
        subgraph=state["configurable"]["checkpoint_ns"] if state else "",
    )


def projection_of(namespace: str, checkpoint_id: str, snapshot: StateSnapshot, channels: Iterable[str]) -> Projection:
    """The projection of a checkpoint that no stream has told of, from its snapshot."""
    return Projection(
        namespace=namespace,
        checkpoint_id=checkpoint_id,
        next=list(snapshot.next),
        tasks=[
            ProjectedTask(id=one.id, name=one.name, path=_path(one), subgraph=_namespace_of(one))
            for one in snapshot.tasks
        ],
        has_tasks=True,
        channels=sorted(channels),
    )


def _path(task: PregelTask) -> str:
    return json.dumps(cast("object", task.path))


def _namespace_of(task: PregelTask) -> str:
    state = task.state
    config = state.config if isinstance(state, StateSnapshot) else state
    return "" if config is None else cast("str", config.get("configurable", {})["checkpoint_ns"])
