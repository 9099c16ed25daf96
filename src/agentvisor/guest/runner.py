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
        case "function":
            from agentvisor.guest.runners.function import run_function

            return run_function
        case "crewai":
            from agentvisor.guest.runners.crewai import run_crewai

            return run_crewai
        case unknown:
            raise InvalidInput(f"framework {unknown!r} is not known: use langgraph, crewai or function")


def told_framework(agent: object) -> str:
    """Tell an agent's framework without importing any."""
    kinds = agent.__mro__ if isinstance(agent, type) else type(agent).__mro__
    if any(_is_of("langgraph", kind.__module__) for kind in kinds):
        return "langgraph"
    if any(_is_of("crewai", kind.__module__) for kind in kinds) or _is_for_crewai(agent):
        return "crewai"
    return "langgraph" if _makes_graphs(agent) else "function"


def _is_for_crewai(agent: object) -> bool:
    """Whether it is a class with @CrewBase, one of its instances, or a function that says it makes a crew or flow."""
    if getattr(agent, "is_crew_class", False):
        return True
    if not inspect.isroutine(agent):
        return False
    returned: object = inspect.signature(agent).return_annotation
    if isinstance(returned, str):
        return returned.split("[")[0].rpartition(".")[2] in ("Crew", "Flow")
    kinds = returned.__mro__ if isinstance(returned, type) else ()
    return any(_is_of("crewai", kind.__module__) for kind in kinds)


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


def _is_of(package: str, module: str) -> bool:
    return module == package or module.startswith(f"{package}.")
