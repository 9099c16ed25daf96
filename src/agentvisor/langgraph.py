"""LangGraph's checkpointer on AgentVisor: what super-steps and finished tasks leave behind is durable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from agentvisor._langgraph.addressing import allowed_thread, checkpoint_id_of, config_of, name_of, query_of
from agentvisor._langgraph.default_config import install_default_config
from agentvisor._langgraph.serialising import dump, dump_record, load_tuple, read_versions
from agentvisor._langgraph.versions import next_version
from agentvisor.client.connection import Connection, connect, own_thread
from agentvisor.client.encoding import Typed
from agentvisor.client.known import CheckpointName, Version
from agentvisor.client.operations import Call, begin
from agentvisor.client.put import NewCheckpoint, Put
from agentvisor.client.reads import FoundCheckpoint, get, list_page, start_of_list
from agentvisor.client.requests import delete_thread, put_writes
from agentvisor.client.transport import Transport
from agentvisor.protocol.metadata import metadata_to_struct

__all__ = ["AgentVisorCheckpointer", "install_default_config"]


class AgentVisorCheckpointer(BaseCheckpointSaver[str]):
    """Keeps a graph's checkpoints and pending writes in AgentVisor.

    Inside a guest it needs no argument: the thread is the run's own (`AGENTVISOR_THREAD_ID`), and any other is refused.
    Outside, in a notebook or a test, it talks to a running host at `endpoint` (`AGENTVISOR_ENDPOINT`, by default
    http://127.0.0.1:8090) with `api_key` (`AGENTVISOR_API_KEY`); the thread id is `configurable.thread_id` as usual.

    Every method has its asynchronous twin. Values are serialised at the call, in the caller's thread; `put` and
    `put_writes` return once what they wrote is durable, and a put only when every put_writes before it is, too.
    Raises `Unavailable` where no host answers, `InvalidInput` naming the channel or the metadata's key that cannot be
    stored, `ValueTooLarge` before anything is sent, `PermissionRefused` for a thread that is not the caller's.
    """

    def __init__(
        self,
        *,
        endpoint: str | None = None,
        api_key: str | None = None,
        transport: Transport | None = None,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._endpoint = endpoint
        self._api_key = api_key
        self._given = None if transport is None else Connection.over(transport)
        _install_in_guest()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that `config` names, or the namespace's latest; None where there is none."""
        found = self._begin_get(config).result()
        return None if found is None else load_tuple(self.serde, found)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """`get_tuple`, awaited."""
        found = await self._begin_get(config).wait()
        return None if found is None else load_tuple(self.serde, found)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, object] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, the newest first; without a config those of every thread that the caller may see."""
        query = query_of(config, filter, before, limit)
        cursor = start_of_list(query)
        while cursor is not None:
            page = begin(list_page(query.thread, cursor), self._connection().transport).result()
            yield from (load_tuple(self.serde, found) for found in page.checkpoints)
            cursor = page.next

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, object] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """`list`, awaited."""
        query = query_of(config, filter, before, limit)
        cursor = start_of_list(query)
        while cursor is not None:
            page = await begin(list_page(query.thread, cursor), self._connection().transport).wait()
            for found in page.checkpoints:
                yield load_tuple(self.serde, found)
            cursor = page.next

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint whose parent is the one that `config` names; returns the config that names it."""
        name = name_of(config)._replace(checkpoint_id=checkpoint["id"])
        self._begin_put(name, config, checkpoint, metadata, new_versions).result()
        return config_of(name)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """`put`, awaited."""
        name = name_of(config)._replace(checkpoint_id=checkpoint["id"])
        await self._begin_put(name, config, checkpoint, metadata, new_versions).wait()
        return config_of(name)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, object]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task of the checkpoint that `config` names has written; the checkpoint may come later."""
        if writes:
            self._begin_put_writes(config, writes, task_id, task_path).result()

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, object]], task_id: str, task_path: str = ""
    ) -> None:
        """`put_writes`, awaited."""
        if writes:
            await self._begin_put_writes(config, writes, task_id, task_path).wait()

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with everything in it; nothing happens where there is none."""
        self._begin_delete(thread_id).result()

    async def adelete_thread(self, thread_id: str) -> None:
        """`delete_thread`, awaited."""
        await self._begin_delete(thread_id).wait()

    def get_next_version(self, current: str | None, channel: None) -> str:  # noqa: ARG002 (the signature is LangGraph's)
        """The version after `current`."""
        return cast("str", next_version(current))

    # --- beginning: serialised and sent before anybody waits -------------------------------------------------------

    def _begin_get(self, config: RunnableConfig) -> Call[FoundCheckpoint | None]:
        connection = self._connection()
        name = name_of(config)
        return begin(get(name, connection.known, self._versions_of), connection.transport)

    def _begin_put(
        self,
        name: CheckpointName,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Call[None]:
        connection = self._connection()
        values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]

        def value(channel: str) -> Typed | None:
            return dump(self.serde, channel, values[channel], name) if channel in values else None

        new = NewCheckpoint(
            name=name,
            parent_id=checkpoint_id_of(config),
            ts=checkpoint["ts"],
            record=dump_record(self.serde, checkpoint),
            metadata=metadata_to_struct(get_checkpoint_metadata(config, metadata)),
            versions=versions,
            changed={channel: value(channel) for channel in new_versions if channel in versions},
            unchanged=value,
        )
        put = Put(new, connection.known, connection.limits)
        return begin(put.run(), connection.transport, before_submit=connection.order.wait)

    def _begin_put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, object]], task_id: str, task_path: str
    ) -> Call[None]:
        connection = self._connection()
        name = name_of(config)
        if connection.known.is_new(name.thread):
            # Writes come before their checkpoint: metadata that will be refused must not leave a thread behind.
            metadata_to_struct(get_checkpoint_metadata(config, {}))
        with connection.order.sending():
            dumped = [
                (WRITES_IDX_MAP.get(channel, idx), channel, dump(self.serde, channel, value, name))
                for idx, (channel, value) in enumerate(writes)
            ]
            return begin(put_writes(name, task_id, task_path, dumped, connection.limits), connection.transport)

    def _begin_delete(self, thread_id: str) -> Call[None]:
        connection = self._connection()
        thread = allowed_thread(thread_id)
        return begin(delete_thread(thread, connection.known), connection.transport)

    def _versions_of(self, record: Typed) -> Mapping[str, Version]:
        return read_versions(self.serde, record)

    def _connection(self) -> Connection:
        # Not before it is needed: a graph is often built where no host is running yet.
        return self._given or connect(self._endpoint, self._api_key)


def _install_in_guest() -> None:
    own = own_thread()
    if own is not None:
        install_default_config(own)


_install_in_guest()
