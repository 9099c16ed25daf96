"""Which assistant a request means: an agent of the configuration by its name, or any assistant by its id."""

from __future__ import annotations

from agentvisor.core.assistants import Assistant
from agentvisor.core.errors import NotFound, UnknownAgent
from agentvisor.host.assistants import system_id
from agentvisor.host.http.services import Services
from agentvisor.host.http.times import iso
from agentvisor.host.render_typed import Json


def assistant_id(agent: str) -> str:
    """The id of the assistant that an agent of the configuration is."""
    return system_id(agent)


def agent_of(services: Services, named: str) -> str:
    """The agent of the configuration of that name, or whose own assistant has that id; `UnknownAgent` otherwise."""
    known = services.config.agents
    found = named if named in known else next((one for one in known if system_id(one) == named.lower()), None)
    if found is None:
        raise UnknownAgent(f"there is no agent {named[:80]!r}: {services.assistants.listed()}", agent=named[:80])
    return found


async def assistant(services: Services, named: str) -> Assistant:
    """The caller's assistant of that id, or the one that the agent of that name is; `NotFound` where there is none."""
    try:
        return await services.assistants.find(services.owner, named)
    except UnknownAgent as error:
        raise NotFound(error.message) from None


async def runnable_assistant(services: Services, named: str) -> Assistant:
    """An assistant whose agent this host has; `UnknownAgent` says which there are."""
    found = await services.assistants.find(services.owner, named)
    require_agent(services, found)
    return found


def require_agent(services: Services, found: Assistant) -> None:
    """Refuse to run an assistant whose agent is not configured (any more)."""
    try:
        services.assistants.check_agent(found.graph_id)
    except NotFound as error:
        raise UnknownAgent(f"assistant {found.assistant_id}: {error.message}", agent=found.graph_id) from None


def shown(one: Assistant) -> dict[str, Json]:
    """An assistant as LangGraph's API shows it."""
    return {**shown_version(one), "created_at": iso(one.created_at_ms), "updated_at": iso(one.updated_at_ms)}


def shown_version(one: Assistant) -> dict[str, Json]:
    """One version of it, which was made when it says."""
    return {
        "assistant_id": one.assistant_id,
        "graph_id": one.graph_id,
        "name": one.name,
        "description": one.description,
        "config": dict(one.config),
        "context": dict(one.context),
        "metadata": dict(one.metadata),
        "version": one.version,
        "created_at": iso(one.versioned_at_ms),
    }
