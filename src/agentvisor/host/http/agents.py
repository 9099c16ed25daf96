"""Agents as LangGraph's API knows them: every agent of the configuration is a graph with one assistant."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID, uuid5

from agentvisor.core.errors import NotFound, UnknownAgent
from agentvisor.host.http.services import Services
from agentvisor.host.http.times import iso
from agentvisor.host.render_typed import Json

_NAMESPACE = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
"""LangGraph's, so that its clients find an assistant by the id that they compute."""


def assistant_id(agent: str) -> str:
    """The id of an agent's assistant."""
    return str(uuid5(_NAMESPACE, agent))


def agent_of(services: Services, named: str) -> str:
    """The agent of that name or assistant id; `UnknownAgent` says which there are."""
    known = services.config.agents
    if named in known:
        return named
    found = next((agent for agent in known if assistant_id(agent) == named.lower()), None)
    if found is None:
        raise UnknownAgent(f"there is no agent {named[:80]!r}: {_listed(known)}", agent=named[:80])
    return found


def assistant(services: Services, named: str) -> dict[str, Json]:
    """An assistant; `NotFound` where there is none."""
    try:
        return shown(services, agent_of(services, named))
    except UnknownAgent as error:
        raise NotFound(error.message) from None


def shown(services: Services, agent: str) -> dict[str, Json]:
    """An agent as an assistant."""
    started = iso(int(services.started_at.timestamp() * 1000))
    return {
        "assistant_id": assistant_id(agent),
        "graph_id": agent,
        "name": agent,
        "description": None,
        "config": {},
        "context": {},
        "metadata": {"created_by": "system"},
        "version": 1,
        "created_at": started,
        "updated_at": started,
    }


def _listed(known: Iterable[str]) -> str:
    names = ", ".join(sorted(known))
    return f"this host has {names}" if names else "this host has none (agents in agentvisor.yaml, or langgraph.json)"
