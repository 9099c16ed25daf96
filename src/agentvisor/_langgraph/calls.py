"""The checkpointer's calls, each begun in the caller's thread: serialised, and on its way, before anybody waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from agentvisor._langgraph import delta_names, task_scope
from agentvisor._langgraph.addressing import allowed_thread, checkpoint_id_of, name_of
from agentvisor._langgraph.serialising import dump, dump_record, read_versions
from agentvisor.client.connection import Connection, own_thread
from agentvisor.client.encoding import Typed
from agentvisor.client.histories import FoundHistory, delta_history
from agentvisor.client.known import CheckpointName
from agentvisor.client.operations import Call, begin
from agentvisor.client.put import NewCheckpoint, Put
from agentvisor.client.put_writes import PutWrites
from agentvisor.client.reads import Cursor, FoundCheckpoint, Page, get, list_page
from agentvisor.client.requests import copy_thread, delete_for_runs, delete_thread, prune
from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import metadata_to_struct


@dataclass(frozen=True, slots=True)
class Calls:
    """One checkpointer's way to the host, with its serialiser."""

    connection: Connection
    serde: SerializerProtocol

    def get(self, config: RunnableConfig) -> Call[FoundCheckpoint | None]:
        name = name_of(config)
        task_scope.note_namespace(name.namespace)
        read = get(name, self.connection.known, lambda record: read_versions(self.serde, record))
        return begin(read, self.connection.transport)

    def list_page(self, thread: str, cursor: Cursor) -> Call[Page]:
        return begin(list_page(thread, cursor), self.connection.transport)

    def delta_history(self, config: RunnableConfig, channels: Sequence[str]) -> Call[dict[str, FoundHistory]]:
        delta_names.note(channels)
        return begin(delta_history(name_of(config), channels, self.connection.known), self.connection.transport)

    def put(
        self,
        name: CheckpointName,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Call[None]:
        values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
        _check_put(checkpoint, metadata)
        merged = get_checkpoint_metadata(config, metadata)
        delta_names.note_counted(merged)

        def value(channel: str) -> Typed | None:
            return dump(self.serde, channel, values[channel], name) if channel in values else None

        new = NewCheckpoint(
            name=name,
            parent_id=checkpoint_id_of(config),
            ts=checkpoint["ts"],
            record=dump_record(self.serde, checkpoint),
            metadata=metadata_to_struct(merged),
            versions=versions,
            changed={channel: value(channel) for channel in new_versions if channel in versions},
            unchanged=value,
        )
        connection = self.connection
        put = Put(new, connection.known, connection.limits)
        return begin(put.run(), connection.transport, before_submit=connection.order.wait)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, object]], task_id: str, task_path: str
    ) -> Call[None]:
        connection = self.connection
        name = name_of(config)
        if connection.known.is_new(name.thread):
            # Writes come before their checkpoint: metadata that will be refused must not leave a thread behind.
            metadata_to_struct(get_checkpoint_metadata(config, {}))
        with connection.order.sending():
            dumped = [
                (WRITES_IDX_MAP.get(channel, idx), channel, dump(self.serde, channel, value, name))
                for idx, (channel, value) in enumerate(writes)
            ]
            deltas = delta_names.delta_names()
            limits, known = connection.limits, connection.known
            storing = PutWrites(name, task_id, task_path, dumped, limits=limits, known=known, delta_channels=deltas)
            for part in storing.ahead():
                connection.transport.submit(part)
            return begin(storing.run(), connection.transport)

    def delete_thread(self, thread_id: str) -> Call[None]:
        deleting = delete_thread(allowed_thread(thread_id), self.connection.known)
        return begin(deleting, self.connection.transport)

    def delete_for_runs(self, run_ids: Sequence[str]) -> Call[None]:
        # In a guest: of its own thread. Outside, the host looks for the threads.
        deleting = delete_for_runs(own_thread() or "", run_ids, self.connection.known)
        return begin(deleting, self.connection.transport)

    def copy_thread(self, source: str, target: str) -> Call[None]:
        copying = copy_thread(allowed_thread(source), allowed_thread(target), self.connection.known)
        return begin(copying, self.connection.transport)

    def prune(self, thread_ids: Sequence[str], strategy: str) -> Call[None]:
        pruning = prune([allowed_thread(one) for one in thread_ids], strategy, self.connection.known)
        return begin(pruning, self.connection.transport)


def _check_put(checkpoint: Checkpoint, metadata: CheckpointMetadata) -> None:
    """What a caller without a type checker may hand in, said before LangGraph's own code trips over it."""
    given_id, given = cast("object", checkpoint["id"]), cast("object", metadata)
    if not isinstance(given_id, str):
        raise InvalidInput(f"checkpoint['id'] must be text, not {type(given_id).__name__}", field="checkpoint.id")
    if not isinstance(given, Mapping):
        raise InvalidInput(f"metadata must be an object, not {type(given).__name__}", field="metadata")
