"""Makes a graph with AgentVisor's checkpointer out of whatever a LangGraph entrypoint names."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from typing import Any, Literal, Protocol, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph  # pyright: ignore[reportMissingTypeStubs] (as below)
from langgraph.pregel import Pregel  # pyright: ignore[reportMissingTypeStubs] (it has inline types, but no marker)
from langgraph.runtime import RunControl
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot, StateUpdate

from agentvisor.core.errors import InvalidInput
from agentvisor.langgraph import AgentVisorCheckpointer, AgentVisorStore


class Graph(Protocol):
    """A compiled graph (`Pregel`), as far as the runner uses it: its generic parameters are the user's business."""

    checkpointer: BaseCheckpointSaver[str] | bool | None
    store: BaseStore | None
    nodes: Mapping[str, object]
    interrupt_before_nodes: Sequence[str] | Literal["*"]
    interrupt_after_nodes: Sequence[str] | Literal["*"]

    @property
    def stream_channels_asis(self) -> str | Sequence[str]: ...

    def copy(self, update: dict[str, object]) -> Graph: ...

    def get_subgraphs(self, *, recurse: bool) -> Iterator[tuple[str, object]]: ...

    def astream(
        self,
        input: object,
        config: RunnableConfig,
        *,
        context: object,
        stream_mode: Sequence[str],
        interrupt_before: Sequence[str] | str | None,
        interrupt_after: Sequence[str] | str | None,
        durability: str | None,
        subgraphs: bool,
        control: RunControl,
    ) -> AsyncIterator[object]: ...

    def astream_events(
        self, input: object, config: RunnableConfig, *, version: str, **options: object
    ) -> AsyncIterator[Mapping[str, Any]]: ...

    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool) -> StateSnapshot: ...

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig: ...


async def graph_of(agent: object, config: RunnableConfig, stack: AsyncExitStack) -> Graph:
    """Compile, call or enter what the entrypoint names until it is a graph; what was entered is left with `stack`."""
    made = agent
    if callable(made) and not isinstance(made, Pregel | StateGraph):
        made = _call(made, config)
        if inspect.isawaitable(made):
            made = await made
    if isinstance(made, AbstractAsyncContextManager):
        made = await stack.enter_async_context(cast("AbstractAsyncContextManager[object]", made))
    elif isinstance(made, AbstractContextManager):
        made = stack.enter_context(cast("AbstractContextManager[object]", made))
    if isinstance(made, StateGraph):
        made = cast("Callable[[], object]", made.compile)()  # pyright: ignore[reportUnknownMemberType]
    if not isinstance(made, Pregel):
        raise InvalidInput(f"the entrypoint gives a {type(made).__qualname__}, not a LangGraph graph")
    return cast("Graph", cast("object", made))


def with_our_checkpointer(graph: Graph) -> Graph:
    """Give the graph AgentVisor's saver, unless it has one or wants none (`checkpointer=False`).

    A saver of another kind is not used, and a warning says so: what it stored would die with the process. Neither is a
    subgraph's: LangGraph gives a subgraph that keeps checkpoints the saver of the graph that it is in.
    """
    if graph.checkpointer is False:
        return graph
    for where, one in [
        ("graph", graph),
        *((f"subgraph {name}", one) for name, one in graph.get_subgraphs(recurse=True)),
    ]:
        saver: object = getattr(one, "checkpointer", None)
        if isinstance(saver, BaseCheckpointSaver) and not isinstance(saver, AgentVisorCheckpointer):
            kind = type(cast("object", saver)).__name__
            _warn(f"the {where}'s {kind} is replaced by AgentVisorCheckpointer")
    if isinstance(graph.checkpointer, AgentVisorCheckpointer):
        return graph
    return graph.copy(update={"checkpointer": AgentVisorCheckpointer()})


def with_our_store(graph: Graph) -> Graph:
    """Give the graph, and all that runs inside it, AgentVisor's store.

    As LangGraph's server does, whatever store the graph was compiled with: what that one holds would die with the
    process. A warning says so.
    """
    if isinstance(graph.store, AgentVisorStore):
        return graph
    if graph.store is not None:
        _warn(f"the graph's {type(graph.store).__name__} is replaced by AgentVisorStore", "store")
    return graph.copy(update={"store": AgentVisorStore()})


def _warn(what: str, without: str = "checkpointer") -> None:
    # Of no place in the code (a level that no stack has): it is one line in the run's log, and no line of the user's
    # has called this.
    told = f"agentvisor: {what}: compile it without a {without} to be rid of this line"
    warnings.warn(told, RuntimeWarning, stacklevel=1 << 16)


def _call(factory: Callable[..., object], config: RunnableConfig) -> object:
    try:
        wanted = [one for one in inspect.signature(factory).parameters.values() if _must_be_given(one)]
    except (TypeError, ValueError):
        wanted = []
    if len(wanted) > 1:
        raise InvalidInput("a function that makes a graph takes nothing, or the run's config")
    return factory(config) if wanted else factory()


def _must_be_given(parameter: inspect.Parameter) -> bool:
    positional = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    return parameter.kind in positional and parameter.default is inspect.Parameter.empty


def names(channels: str | Sequence[str]) -> list[str]:
    """Channels as a list; a graph with a single one has it as text."""
    return [channels] if isinstance(channels, str) else list(channels)


def interrupts_of(payload: object) -> Sequence[object] | None:
    """The interrupts that an "updates" payload tells of; None where it tells of none. Static ones are empty."""
    if not isinstance(payload, Mapping):
        return None
    return cast("Mapping[str, Sequence[object]]", payload).get("__interrupt__")
