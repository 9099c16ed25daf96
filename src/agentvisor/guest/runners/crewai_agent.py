"""Makes a crew or a flow out of whatever an entrypoint names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

from crewai import Crew, Flow
from crewai.flow.persistence.sqlite import SQLiteFlowPersistence

from agentvisor._crewai.persistence import ThreadPersistence
from agentvisor.core.errors import InvalidInput

AnyFlow = Flow[Any]


def subject_of(agent: object, entrypoint: str) -> Crew | AnyFlow:
    """The crew or flow itself, a class of one (@CrewBase, Flow), or what a function without arguments returns."""
    made = agent
    # At most: a function, the class that it returns, an object of that, its crew.
    for _ in range(4):
        if isinstance(made, Crew | Flow):
            return cast("Crew | AnyFlow", made)
        made = _made(made, entrypoint)
    if isinstance(made, Crew | Flow):
        return cast("Crew | AnyFlow", made)
    raise InvalidInput(f"{entrypoint} gives a {_kind(made)}, not a crew or flow")


def with_our_persistence(flow: AnyFlow) -> None:
    """Keep the state of a flow that is persisted on the thread, whatever it was to be kept in."""
    definition = flow._definition  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    wanted = [definition.persist, *(method.persist for method in definition.methods.values())]
    enabled = [one for one in wanted if one is not None and one.enabled]
    own = [one for one in (flow.persistence, *(one.persistence for one in enabled)) if one is not None]
    if not (own or enabled):
        return
    for one in own:
        if not isinstance(one, SQLiteFlowPersistence | ThreadPersistence):
            sys.stderr.write(
                f"agentvisor: the flow's {_kind(one)} is replaced by ThreadPersistence (agentvisor.crewai): "
                "leave it out to be rid of this line\n"
            )
    flow.persistence = ThreadPersistence()
    flow._instance_persistence = True  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (it counts more than what methods name)


def _made(agent: object, entrypoint: str) -> object:
    if (
        isinstance(crew := getattr(type(agent), "crew", None), object)
        and callable(crew)
        and not isinstance(agent, type)
    ):
        # An instance of a class with @CrewBase.
        return cast("Any", agent).crew()
    if callable(agent):
        return cast("Callable[[], object]", agent)()
    raise InvalidInput(
        f"{entrypoint} is a {_kind(agent)}: a CrewAI agent is a Crew, a Flow, a class of one, or a function without "
        "arguments that returns one"
    )


def _kind(value: object) -> str:
    return type(value).__qualname__
