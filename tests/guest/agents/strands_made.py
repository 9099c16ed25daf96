"""Functions that make Strands agents, as users write them."""

from typing import Any

from strands import Agent
from strands.multiagent import Swarm


def said() -> Agent:
    return Agent()


def unsaid():  # type: ignore[no-untyped-def]
    return Swarm([Agent()])


async def unsaid_later():  # type: ignore[no-untyped-def]
    return Agent()


def plain(given: Any) -> str:
    """Takes an input: it is the agent itself, whatever it calls."""
    return str(Agent()(given))
