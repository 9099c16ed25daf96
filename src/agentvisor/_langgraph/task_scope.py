"""The task of a graph in which code runs: how effects are told apart there, and how they ask.

A task's id is made of its checkpoint's, so that it is the same in every attempt that runs from that checkpoint. That
is so only where the checkpoint is stored: a subgraph compiled with `checkpointer=False` begins anew each time, and what
it does belongs to the task that calls it.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from agentvisor.client.tasks import find_with
from agentvisor.core.effects import Place
from agentvisor.core.errors import InvalidInput
from agentvisor.core.ids import ROOT, CheckpointId, Namespace

_TASK_ID, _SCRATCHPAD, _DURABILITY = "__pregel_task_id", "__pregel_scratchpad", "__pregel_durability"
_SEND, _RESUME = "__pregel_send", "__resume__"
"""Names in the config of a task (langgraph._internal._constants)."""
_NAMESPACE, _MAP = "checkpoint_ns", "checkpoint_map"

_MOST_NAMESPACES = 50_000

handed: ContextVar[RunnableConfig | None] = ContextVar("agentvisor_handed", default=None)
"""The config of the task that has started this thread."""

_stored: OrderedDict[str, bool] = OrderedDict()
_lock = threading.Lock()


def note_namespace(namespace: str) -> None:
    """A graph asks our saver for its checkpoint: the checkpoints of that namespace are stored."""
    with _lock:
        _stored[namespace] = True
        _stored.move_to_end(namespace)
        while len(_stored) > _MOST_NAMESPACES:
            _stored.popitem(last=False)


def config_of_task() -> RunnableConfig | None:
    """The config of the task that runs here, or that has started this thread."""
    for config in (var_child_runnable_config.get(), handed.get()):
        if config is not None and _TASK_ID in config.get("configurable", {}):
            return config
    return None


@dataclass(frozen=True, slots=True)
class GraphTask:
    """A task whose checkpoint is stored; `config` is that of the innermost task, which may be in it."""

    config: RunnableConfig
    namespace: str
    task: str
    """The task's own id."""

    def place(self, key: str) -> Place:
        configurable = _configurable(self.config)
        if configurable.get(_DURABILITY) == "exit":
            raise InvalidInput(
                f'effect {key!r}: with durability="exit" no checkpoint is stored while the graph runs, and a task that '
                'runs again is not known to be the same: use durability="sync" or "async"'
            )
        checkpoints = cast("Mapping[str, str]", configurable[_MAP])
        return Place(
            f"{self.namespace}/{self.task}",
            key,
            Namespace(self.namespace),
            CheckpointId(checkpoints[self.namespace]),
            CheckpointId(checkpoints[ROOT]) if self.namespace != ROOT and ROOT in checkpoints else None,
        )

    def ask(self, value: object, before_pause: Callable[[str], None] | None = None) -> object:
        from langgraph.errors import GraphInterrupt
        from langgraph.types import Interrupt, interrupt

        with _with(self.config):
            try:
                return interrupt(value)
            except GraphInterrupt as error:
                if before_pause is not None:
                    (asked,) = cast("tuple[tuple[Interrupt, ...]]", error.args)
                    before_pause(asked[0].id)
                raise

    def ask_last(self, value: object) -> object:
        from langgraph.types import interrupt

        scratchpad = _configurable(self.config)[_SCRATCHPAD]
        with _with(self._counted_by(lambda: len(_answers(scratchpad)))):
            return interrupt(value)

    def answers(self) -> list[object]:
        return _answers(_configurable(self.config)[_SCRATCHPAD])

    def skip(self) -> None:
        cast("Callable[[], int]", getattr(_configurable(self.config)[_SCRATCHPAD], "interrupt_counter"))()  # noqa: B009

    def keep_answers(self) -> None:
        send = cast("Callable[[list[tuple[str, object]]], None]", _configurable(self.config)[_SEND])
        send([(_RESUME, self.answers())])

    def _counted_by(self, counter: Callable[[], int]) -> RunnableConfig:
        configurable = _configurable(self.config)
        copied = dataclasses.replace(configurable[_SCRATCHPAD], interrupt_counter=counter)  # pyright: ignore[reportArgumentType, reportUnknownVariableType, reportCallIssue]
        config = self.config.copy()
        config["configurable"] = {**configurable, _SCRATCHPAD: copied}
        return config

    @contextmanager
    def counting(self) -> Generator[Callable[[], int]]:
        scratchpad = _configurable(self.config)[_SCRATCHPAD]
        count = [0]
        counter = cast("Callable[[], int]", getattr(scratchpad, "interrupt_counter"))  # noqa: B009 (its type is private)

        def counted() -> int:
            count[0] += 1
            return counter()

        with _with(self._counted_by(counted)):
            yield lambda: count[0]


@contextmanager
def _with(config: RunnableConfig) -> Generator[None]:
    """Let a config be the one that LangGraph's functions find."""
    before = var_child_runnable_config.get()
    var_child_runnable_config.set(config)
    try:
        yield
    finally:
        var_child_runnable_config.set(before)


def current() -> GraphTask | None:
    """The innermost task here whose checkpoint is stored."""
    config = config_of_task()
    if config is None:
        return None
    configurable = _configurable(config)
    checkpoints = cast("Mapping[str, str]", configurable.get(_MAP) or {})
    inner = str(configurable.get(_NAMESPACE) or "")
    at = inner
    while at:
        at = at.rpartition("|")[0]
        if at in checkpoints and at in _stored:
            return GraphTask(config, at, _task_below(at, inner))
    return None


def _task_below(namespace: str, inner: str) -> str:
    """The id of the task of a namespace in which the innermost namespace is: `node:id`, then `|` and what is in it."""
    segments = inner[len(namespace) :].lstrip("|").split("|")
    return next((one.partition(":")[2] for one in segments if ":" in one), segments[0])


def _answers(scratchpad: object) -> list[object]:
    return list(cast("list[object]", getattr(scratchpad, "resume")))  # noqa: B009 (its type is private)


def _configurable(config: RunnableConfig) -> Mapping[str, object]:
    return cast("Mapping[str, object]", config.get("configurable") or {})


find_with(current)
