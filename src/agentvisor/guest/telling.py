"""Tells which framework an agent is written with, without importing any."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import get_origin

_GRAPH_TYPES = ("StateGraph", "CompiledStateGraph", "CompiledGraph", "Pregel")
_ADK_TYPES = ("App", "Agent", "LlmAgent", "BaseAgent", "SequentialAgent", "ParallelAgent", "LoopAgent", "Workflow")
_CREW_TYPES = ("Crew", "Flow")


def told_framework(agent: object) -> str:
    """By what it is; of a function by what it says that it makes, or by what its module imports."""
    kinds = agent.__mro__ if isinstance(agent, type) else type(agent).__mro__
    for framework, package, is_of_it in _TELLTALES:
        if (package and any(_is_of(package, kind.__module__) for kind in kinds)) or is_of_it(agent):
            return framework
    return "function"


def _makes_strands(agent: object) -> bool:
    """Whether it is a function without arguments that makes a Strands agent: it says so, or its module's imports."""
    if not inspect.isroutine(agent) or inspect.signature(agent).parameters:
        return False
    returned = inspect.signature(agent).return_annotation
    known = _known_to(agent)
    if isinstance(returned, str):
        # Annotations may be text (from __future__ import annotations).
        returned = known.get(returned, inspect.Signature.empty)
    if returned is not inspect.Signature.empty:
        return _is_of("strands", _module_of(returned))
    modules = list(map(_module_of, known.values()))
    return any(_is_of("strands", one) for one in modules) and not any(_is_of("langgraph", one) for one in modules)


def _makes_adk_agents(agent: object) -> bool:
    """Whether it is a function that says it makes an agent of ADK."""
    if not inspect.isroutine(agent):
        return False
    returned = inspect.signature(agent).return_annotation
    if isinstance(returned, str):
        # Some of these names are other frameworks' too, so the module has to know ADK.
        known = _known_to(agent).get(returned.split(".")[0])
        return returned.rpartition(".")[2] in _ADK_TYPES and _is_of("google.adk", _module_of(known))
    return _is_of("google.adk", _module_of(returned))


def _makes_pydantic_ai(agent: object) -> bool:
    """Whether it is a function that says it makes an agent of Pydantic AI."""
    if not inspect.isroutine(agent):
        return False
    returned: object = inspect.signature(agent).return_annotation
    if isinstance(returned, str):
        returned = _known_to(agent).get(returned.split("[")[0].split(".")[0])
    return _is_of("pydantic_ai", _module_of(get_origin(returned) or returned))


def _makes_openai_agents(agent: object) -> bool:
    """Whether it is an agent of the OpenAI Agents SDK, or a function that says it makes one.

    The SDK's package is named `agents`, as are many a project's own: what only it has must be there as well.
    """
    known = getattr(sys.modules.get("agents"), "RunState", None) is not None
    if not known or not inspect.isroutine(agent):
        return known and any(kind.__module__ == "agents.agent" for kind in type(agent).__mro__)
    returned: object = inspect.signature(agent).return_annotation
    if isinstance(returned, str):
        returned = _known_to(agent).get(returned.split("[")[0].split(".")[0])
    made = get_origin(returned) or returned
    return _module_of(made) in ("agents", "agents.agent")


def _is_for_crewai(agent: object) -> bool:
    """Whether it is a class with @CrewBase, one of its instances, or a function that says it makes a crew or flow."""
    if getattr(agent, "is_crew_class", False):
        return True
    if not inspect.isroutine(agent):
        return False
    returned: object = inspect.signature(agent).return_annotation
    if isinstance(returned, str):
        return returned.split("[")[0].rpartition(".")[2] in _CREW_TYPES
    kinds = returned.__mro__ if isinstance(returned, type) else ()
    return any(_is_of("crewai", kind.__module__) for kind in kinds)


def _makes_graphs(agent: object) -> bool:
    """Whether it is a function that makes a graph: it says so, or it does not take an input as an agent does.

    A method is one, and so is an object that is called as one.
    """
    if not callable(agent) or isinstance(agent, type):
        return False
    try:
        signature = inspect.signature(agent)
    except (TypeError, ValueError):
        return False
    returned: object = signature.return_annotation
    if isinstance(returned, str):
        said = returned.split("[")[0].rpartition(".")[2]
        return said in _GRAPH_TYPES or list(signature.parameters) in ([], ["config"])
    return _is_of("langgraph", _module_of(returned)) or list(signature.parameters) in ([], ["config"])


_TELLTALES: tuple[tuple[str, str, Callable[[object], bool]], ...] = (
    ("strands", "strands", _makes_strands),
    ("adk", "google.adk", _makes_adk_agents),
    ("crewai", "crewai", _is_for_crewai),
    ("pydantic_ai", "pydantic_ai", _makes_pydantic_ai),
    # By its function alone: a project's own package may have that name.
    ("openai_agents", "", _makes_openai_agents),
    # The last: a function without arguments is taken for one that makes a graph.
    ("langgraph", "langgraph", _makes_graphs),
)
"""Framework, its package, and what tells a function that makes its agents."""


def _known_to(agent: object) -> dict[str, object]:
    """The names of the module that a function is in."""
    return getattr(agent, "__globals__", {})


def _module_of(value: object) -> str:
    """Where it was made; of a module its own name."""
    named = getattr(value, "__name__" if inspect.ismodule(value) else "__module__", None)
    return named if isinstance(named, str) else ""


def _is_of(package: str, module: str) -> bool:
    return module == package or module.startswith(f"{package}.")
