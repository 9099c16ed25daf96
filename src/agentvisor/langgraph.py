"""LangGraph's checkpointer on AgentVisor: what super-steps and finished tasks leave behind is durable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from agentvisor._langgraph import delta_names, puts
from agentvisor._langgraph.addressing import config_of, name_of, query_of
from agentvisor._langgraph.calls import Calls
from agentvisor._langgraph.default_config import install_default_config
from agentvisor._langgraph.repair import repair_messages
from agentvisor._langgraph.repair_hook import repair_hook
from agentvisor._langgraph.serialising import load_history, load_tuple
from agentvisor._langgraph.store import AgentVisorStore
from agentvisor._langgraph.versions import next_version
from agentvisor.client.connection import Connection, connect, own_thread
from agentvisor.client.reads import start_of_list
from agentvisor.client.transport import Transport

if TYPE_CHECKING:
    # At run time it is imported when it is asked for: langchain may not be installed.
    from agentvisor._langgraph.repair_middleware import RepairMiddleware

__all__ = [
    "AgentVisorCheckpointer", "AgentVisorStore", "RepairMiddleware", "install_default_config", "repair_hook",
    "repair_messages",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name != "RepairMiddleware":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from agentvisor._langgraph.repair_middleware import RepairMiddleware
    except ModuleNotFoundError as error:
        why = f"RepairMiddleware is for langchain's create_agent, and {error.name} is missing: pip install langchain"
        raise ImportError(why) from error
    return RepairMiddleware


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
        found = self._calls().get(config).result()
        return None if found is None else load_tuple(self.serde, found)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """`get_tuple`, awaited."""
        found = await self._calls().get(config).wait()
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
            page = self._calls().list_page(query.thread, cursor).result()
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
            page = await self._calls().list_page(query.thread, cursor).wait()
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
        self._calls().put(name, config, checkpoint, metadata, new_versions).result()
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
        with puts.ending(name):
            await self._calls().put(name, config, checkpoint, metadata, new_versions).wait()
        return config_of(name)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, object]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task of the checkpoint that `config` names has written; the checkpoint may come later."""
        if writes:
            self._calls().put_writes(config, writes, task_id, task_path).result()

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, object]], task_id: str, task_path: str = ""
    ) -> None:
        """`put_writes`, awaited."""
        if writes:
            await self._calls().put_writes(config, writes, task_id, task_path).wait()

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with everything in it; nothing happens where there is none."""
        self._calls().delete_thread(thread_id).result()

    async def adelete_thread(self, thread_id: str) -> None:
        """`delete_thread`, awaited."""
        await self._calls().delete_thread(thread_id).wait()

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that these runs have made (`metadata.run_id`) with their writes, as a rollback does.

        Outside a guest all threads are looked through; one that a run is active on is refused with `Conflict`. A delta
        channel's value at checkpoints that stay does not change by it.
        """
        if run_ids:
            self._calls().delete_for_runs(run_ids).result()

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """`delete_for_runs`, awaited."""
        if run_ids:
            await self._calls().delete_for_runs(run_ids).wait()

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy every checkpoint of every namespace, ids and parents kept, with all writes; not in a guest.

        Raises `NotFound` where there is no source, `Conflict` where the target holds anything else or is busy.
        """
        self._calls().copy_thread(source_thread_id, target_thread_id).result()

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """`copy_thread`, awaited."""
        await self._calls().copy_thread(source_thread_id, target_thread_id).wait()

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the newest checkpoint of every namespace with its writes ("keep_latest"), or none ("delete").

        Values of delta channels stay whole. In a guest, only its own thread can be pruned.
        """
        if thread_ids:
            self._calls().prune(thread_ids, strategy).result()

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`prune`, awaited."""
        if thread_ids:
            await self._calls().prune(thread_ids, strategy).wait()

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What delta channels are made of: writes of a checkpoint's ancestors, oldest first, from a stored value on."""
        if not channels:
            return {}
        name = name_of(config)
        found = self._calls().delta_history(config, channels).result()
        return {channel: load_history(self.serde, channel, found.get(channel), name) for channel in channels}

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """`get_delta_channel_history`, awaited."""
        if not channels:
            return {}
        name = name_of(config)
        found = await self._calls().delta_history(config, channels).wait()
        return {channel: load_history(self.serde, channel, found.get(channel), name) for channel in channels}

    def get_next_version(self, current: str | None, channel: None) -> str:  # noqa: ARG002 (the signature is LangGraph's)
        """The version after `current`."""
        return cast("str", next_version(current))

    def _calls(self) -> Calls:
        delta_names.watch()
        # No host is looked for before it is needed: a graph is often built where none is running yet.
        return Calls(self._given or connect(self._endpoint, self._api_key), self.serde)


def _install_in_guest() -> None:
    own = own_thread()
    if own is not None:
        install_default_config(own)


_install_in_guest()
