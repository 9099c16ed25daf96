"""Makes a graph end between two steps of its root when the host stops, whatever its durability is."""

from __future__ import annotations

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.runtime import RunControl
from typing_extensions import override

from agentvisor.client.socketpair import Channel

_TASK_ID = "__pregel_task_id"
"""In the config of whatever runs inside a task (LangGraph's CONFIG_KEY_TASK_ID)."""


class RootControl(RunControl):
    """Asks the run's own graph to make way, and none that runs inside one of its tasks.

    LangGraph hands a run's control to every graph that a node calls. One without a checkpointer would lose what it has
    done, and be begun anew.
    """

    __slots__ = ("_channel",)

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    @property
    @override
    def drain_requested(self) -> bool:
        if not self._channel.drain_asked:
            return False
        config = var_child_runnable_config.get() or {}
        return _TASK_ID not in config.get("configurable", {})
