"""Which checkpoint a LangGraph config names, and whether this process may use its thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from langchain_core.runnables import RunnableConfig

from agentvisor.client.connection import own_thread
from agentvisor.client.known import CheckpointName
from agentvisor.client.reads import Query
from agentvisor.core import ids
from agentvisor.core.errors import InvalidInput, PermissionRefused
from agentvisor.core.saves import RESERVED
from agentvisor.protocol.metadata import metadata_to_struct


def name_of(config: RunnableConfig) -> CheckpointName:
    """The checkpoint that a config names; its id is empty where the latest is meant."""
    configurable = _configurable(config)
    thread = allowed_thread(configurable.get("thread_id"))
    return CheckpointName(thread, _allowed_namespace(configurable) or "", checkpoint_id_of(config))


def config_of(name: CheckpointName) -> RunnableConfig:
    """The config that names a checkpoint."""
    return {
        "configurable": {
            "thread_id": name.thread,
            "checkpoint_ns": name.namespace,
            "checkpoint_id": name.checkpoint_id,
        }
    }


def query_of(
    config: RunnableConfig | None,
    filter: Mapping[str, object] | None,
    before: RunnableConfig | None,
    limit: int | None,
) -> Query:
    """What a list asks for: without a config, the checkpoints of every thread that the caller may see."""
    own = own_thread()
    configurable = _configurable(config)
    return Query(
        thread=(own or "") if config is None else allowed_thread(configurable.get("thread_id")),
        all_threads=config is None and own is None,
        namespace=_allowed_namespace(configurable),
        checkpoint_id=checkpoint_id_of(config),
        before=checkpoint_id_of(before),
        filter=metadata_to_struct(filter, what="filter") if filter else None,
        limit=limit,
    )


def allowed_thread(wanted: object) -> ids.ThreadId:
    """The thread of a call: the run's own inside a guest, and there no other."""
    own = own_thread()
    if own is not None:
        if wanted and str(wanted) != own:
            raise PermissionRefused(
                f"this agent runs on thread {own} and may not use thread {str(wanted)[:80]!r}: leave thread_id out",
                thread_id=own,
            )
        return own
    if not wanted:
        raise InvalidInput(
            "no thread id: outside an AgentVisor run, pass config={'configurable': {'thread_id': ...}}",
            field="thread_id",
        )
    return ids.thread_id(str(wanted))


def _allowed_namespace(configurable: Mapping[str, object]) -> str | None:
    """The namespace that a config names, which is none of those that hold other things than graphs' checkpoints."""
    given = configurable.get("checkpoint_ns")
    namespace = None if given is None else str(given)
    if namespace is not None and namespace.startswith(RESERVED):
        raise InvalidInput(
            f"checkpoint_ns {namespace[:80]!r} is none of a graph's: what agentvisor.checkpoint saves is read with it",
            field="checkpoint_ns",
        )
    return namespace


def checkpoint_id_of(config: RunnableConfig | None) -> str:
    """The id that a config gives; empty where it gives none."""
    return str(_configurable(config).get("checkpoint_id") or "")


def _configurable(config: RunnableConfig | None) -> Mapping[str, object]:
    return cast("Mapping[str, object]", {} if config is None else config.get("configurable") or {})
