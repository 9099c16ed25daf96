"""The run's thread id for a graph that is called without a config, wherever in the agent process it is called.

LangGraph refuses `graph.invoke({...})` with a checkpointer and no `configurable`, before it asks the checkpointer. It
takes what the call leaves out from langchain-core's context variable, in which a node finds its own config: so a config
at the bottom of that variable is what every call starts from, and what a node sets covers it. Tasks of asyncio
inherit it. Threads begin with an empty context (before Python 3.14, and there by default), so it is handed to them.
"""

from __future__ import annotations

import threading
from concurrent.futures.thread import _worker  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownVariableType]

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from agentvisor._langgraph import task_scope

_default: RunnableConfig | None = None
_start = threading.Thread.start


def install_default_config(thread_id: str) -> None:
    """Make `thread_id` the one that graphs run on unless they are told another; calling it again changes nothing."""
    global _default  # noqa: PLW0603 (it is the process's: there is one run in it)
    if _default is None or _default.get("configurable") != {"thread_id": thread_id}:
        _default = RunnableConfig(configurable={"thread_id": thread_id})
    if threading.Thread.start is not _start_with_default:
        threading.Thread.start = _start_with_default
    _use_default()


def _use_default() -> None:
    """Put the default at the bottom of this context; what a node has set stays."""
    current = var_child_runnable_config.get()
    if current is None or _is_a_default(current):
        var_child_runnable_config.set(_default)


def _is_a_default(config: RunnableConfig) -> bool:
    return config.keys() == {"configurable"} and config.get("configurable", {}).keys() == {"thread_id"}


def _start_with_default(self: threading.Thread) -> None:
    run = self.run
    # A pool's thread outlives the task that happens to start it, and works for others: it is told nothing.
    config = None if getattr(self, "_target", None) is _worker else task_scope.config_of_task()

    def run_with_default() -> None:
        self.__dict__.pop("run", None)
        _use_default()
        task_scope.handed.set(config)
        run()

    # On the thread and not on its class: classes of threads have run methods of their own.
    self.run = run_with_default
    try:
        _start(self)
    except BaseException:
        self.__dict__.pop("run", None)
        raise
