"""LangGraph's conformance tests on a run's own thread: a test's first thread stands for it, any other is itself."""

import asyncio
import importlib
import os
import sys
import traceback
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, ChannelVersions, Checkpoint, CheckpointMetadata

from agentvisor.langgraph import AgentVisorCheckpointer

DELTA_HISTORY = "delta_channel_history"


class OnOwnThread(BaseCheckpointSaver[str]):
    """AgentVisor's saver with one thread id mapped to the run's; everything else goes through as it is."""

    def __init__(self) -> None:
        super().__init__()
        self._saver = AgentVisorCheckpointer()
        self._their_id: str | None = None

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self._theirs(await self._saver.aput(self._ours(config), checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._saver.aput_writes(self._ours(config), writes, task_id, task_path)

    async def aget_tuple(self, config: RunnableConfig) -> Any:
        found = await self._saver.aget_tuple(self._ours(config))
        return None if found is None else self._tuple(found)

    async def alist(self, config: RunnableConfig | None, **how: Any) -> AsyncIterator[Any]:
        async for found in self._saver.alist(None if config is None else self._ours(config), **how):
            yield self._tuple(found)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._saver.adelete_thread(
            self._ours({"configurable": {"thread_id": thread_id}})["configurable"].get("thread_id", "")
        )

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._saver.adelete_for_runs(run_ids)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._saver.aprune([self._our_id(one) for one in thread_ids], strategy=strategy)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._saver.acopy_thread(self._our_id(source_thread_id), target_thread_id)

    async def aget_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Any:
        return await self._saver.aget_delta_channel_history(config=self._ours(config), channels=channels)

    def _our_id(self, thread_id: str) -> str:
        """Their id of the run's own thread, as the run's own."""
        own: str = os.environ["AGENTVISOR_THREAD_ID"]
        return own if thread_id == self._their_id else thread_id

    def _ours(self, config: RunnableConfig) -> RunnableConfig:
        configurable = dict(config["configurable"])
        self._their_id = self._their_id or configurable["thread_id"]
        if configurable["thread_id"] == self._their_id:
            del configurable["thread_id"]
        return {**config, "configurable": configurable}

    def _theirs(self, config: Any) -> Any:
        return config and {"configurable": {**config["configurable"], "thread_id": self._their_id}}

    def _tuple(self, found: Any) -> Any:
        return found._replace(config=self._theirs(found.config), parent_config=self._theirs(found.parent_config))


def test(capability: str, name: str) -> str:
    """Run one test of the suite; returns why it failed, or nothing."""
    try:
        if capability == DELTA_HISTORY:
            sys.path.append(str(Path(__file__).parents[3]))  # where `tests` is
            suite = importlib.import_module("tests.langgraph_delta_history")
            asyncio.run(getattr(suite, name)(OnOwnThread(), "theirs"))
        else:
            suite = importlib.import_module(f"langgraph.checkpoint.conformance.spec.test_{capability}")
            asyncio.run(getattr(suite, name)(OnOwnThread()))
    except Exception:  # noqa: BLE001 - how a test failed is its result
        return traceback.format_exc(limit=-3)
    return ""
