"""What runs an agent of one kind: the protocol that runners keep, and the choice among them."""

from __future__ import annotations

import inspect
from typing import Protocol

from agentvisor.client.socketpair import Channel
from agentvisor.core.errors import InvalidInput
from agentvisor.guest.cancellation import Cancellation
from agentvisor.protocol.v1.guest_pb2 import AgentTask, Outcome


class Runner(Protocol):
    """Runs one agent to its end."""

    def __call__(self, agent: object, task: AgentTask, channel: Channel, cancellation: Cancellation) -> Outcome:
        """Return COMPLETED or PAUSED, with everything that was written acknowledged; raise what the agent raises."""
        ...


def runner_for(framework: str, agent: object) -> Runner:
    """Choose by the configured framework, or else by what the agent is. Imports that framework only."""
    match framework or told_framework(agent):
        case "langgraph":
            from agentvisor.guest.runners.langgraph import run_graph

            return run_graph
        case "strands":
            from agentvisor.guest.runners.strands import run_strands

            return run_strands
        case "function":
            from agentvisor.guest.runners.function import run_function

            return run_function
        case unknown:
            raise InvalidInput(f"framework {unknown!r} is not known: use langgraph, strands or function")


def told_framework(agent: object) -> str:
    """Tell an agent's framework without importing any."""
    kinds = agent.__mro__ if isinstance(agent, type) else type(agent).__mro__
    if any(_is_of("langgraph", kind.__module__) for kind in kinds):
        return "langgraph"
    if any(_is_of("strands", kind.__module__) for kind in kinds) or _makes_strands(agent):
        return "strands"
    return "langgraph" if _makes_graphs(agent) else "function"


_GRAPH_TYPES = ("StateGraph", "CompiledStateGraph", "CompiledGraph", "Pregel")


def _makes_graphs(agent: object) -> bool:
    """Whether it is a function that makes a graph: it says so, or it does not take an input as an agent does."""
    if not inspect.isroutine(agent):
        return False
    signature = inspect.signature(agent)
    names = list(signature.parameters)
    return _is_graph(signature.return_annotation) or names in ([], ["config"])


def _is_graph(returned: object) -> bool:
    if isinstance(returned, str):
        # Annotations may be text (from __future__ import annotations).
        return any(returned.split("[")[0].rpartition(".")[2] == name for name in _GRAPH_TYPES)
    module = getattr(returned, "__module__", "")
    return isinstance(module, str) and _is_of("langgraph", module)


def _makes_strands(agent: object) -> bool:
    """Whether it is a function without arguments that makes a Strands agent: it says so, or its module's imports."""
    if not inspect.isroutine(agent) or inspect.signature(agent).parameters:
        return False
    returned = inspect.signature(agent).return_annotation
    known: dict[str, object] = getattr(agent, "__globals__", {})
    if isinstance(returned, str):
        # Annotations may be text (from __future__ import annotations).
        returned = known.get(returned, inspect.Signature.empty)
    if returned is not inspect.Signature.empty:
        return _is_of("strands", _module_of(returned))
    modules = list(map(_module_of, known.values()))
    return any(_is_of("strands", one) for one in modules) and not any(_is_of("langgraph", one) for one in modules)


def _module_of(value: object) -> str:
    """Where it was made; of a module its own name."""
    return str(getattr(value, "__module__", None) or getattr(value, "__name__", None) or "")


def _is_of(package: str, module: str) -> bool:
    return module == package or module.startswith(f"{package}.")
