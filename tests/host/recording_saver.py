"""A LangGraph saver whose puts are also kept as AgentVisor's records, so that what is rendered can be compared."""

from collections.abc import Iterator, Sequence
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.memory import InMemorySaver

from agentvisor.core.applying import apply
from agentvisor.core.ids import BlobKey, CheckpointId, Namespace
from agentvisor.core.records import Checkpoint, Operation, ProjectedTask, Projection, PutBlobs, TaskWrites, Write
from agentvisor.core.store import Store
from agentvisor.protocol.blobs import Limits, blob_key, encode
from agentvisor.protocol.convert import blob_from_message
from agentvisor.protocol.metadata import metadata_to_struct


class RecordingSaver(InMemorySaver):
    def __init__(self) -> None:
        super().__init__()
        self.store = Store()
        self.blobs: dict[BlobKey, tuple[str, bytes]] = {}
        self.versions: dict[tuple[str, str, Any], BlobKey | None] = {}

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        configurable = config["configurable"]
        namespace = Namespace(configurable.get("checkpoint_ns", ""))
        for channel, version in new_versions.items():
            key = None
            if channel in checkpoint["channel_values"]:
                typed = self.serde.dumps_typed(checkpoint["channel_values"][channel])
                key = BlobKey(blob_key(*typed))
                self.blobs[key] = typed
                self.apply(PutBlobs((blob_from_message(encode(*typed, None, Limits())),)))
            self.versions[namespace, channel, version] = key
        kind, record = self.serde.dumps_typed({**checkpoint, "channel_values": {}})
        stored = super().put(config, checkpoint, metadata, new_versions)
        kept = self.storage[configurable["thread_id"]][namespace][checkpoint["id"]][1]
        self.apply(
            Checkpoint(
                namespace=namespace,
                checkpoint_id=CheckpointId(checkpoint["id"]),
                parent_id=configurable.get("checkpoint_id"),
                type=kind,
                record=record,
                metadata=metadata_to_struct(self.serde.loads_typed(kept)).SerializeToString(),
                channels={
                    channel: self.versions.get((namespace, channel, version))
                    for channel, version in checkpoint["channel_versions"].items()
                },
                ts=checkpoint["ts"],
            )
        )
        return stored

    def put_writes(self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        configurable = config["configurable"]
        kept: list[Write] = []
        for index, (channel, value) in enumerate(writes):
            type_, data = self.serde.dumps_typed(value)
            kept.append(Write(WRITES_IDX_MAP.get(channel, index), channel, type_, data, 0))
        self.apply(
            TaskWrites(
                Namespace(configurable.get("checkpoint_ns", "")),
                configurable["checkpoint_id"],
                task_id,
                task_path,
                tuple(kept),
            )
        )
        super().put_writes(config, writes, task_id, task_path)

    def apply(self, operation: Operation) -> None:
        apply(self.store, operation)

    def project(self, graph: Any, config: Any) -> None:
        """Project every checkpoint of the root as the runner does: what only the graph knows."""
        for snapshot in self.snapshots(graph, config):
            configurable = snapshot.config["configurable"]
            self.apply(
                Projection(
                    Namespace(""),
                    configurable["checkpoint_id"],
                    tuple(task.name for task in snapshot.tasks),
                    tuple(
                        ProjectedTask(
                            task.id,
                            task.name,
                            self.json(task.path),
                            task.state["configurable"]["checkpoint_ns"] if task.state else "",
                        )
                        for task in snapshot.tasks
                    ),
                    tuple(graph.stream_channels_asis)
                    if not isinstance(graph.stream_channels_asis, str)
                    else (graph.stream_channels_asis,),
                )
            )

    def snapshots(self, graph: Any, config: Any) -> Iterator[Any]:
        return graph.get_state_history(config)

    @staticmethod
    def json(path: Any) -> str:
        import json

        return json.dumps(path)
