"""Creates threads that begin with a history: the super-steps that a caller brings, made anew by the agent's graph."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from pydantic import JsonValue

from agentvisor.core.errors import AgentVisorError, Conflict, NotFound, UpdateRefused
from agentvisor.core.ids import ThreadId
from agentvisor.host.http.agents import agent_of
from agentvisor.host.http.bodies_threads import HistoricUpdate, ThreadCreate, lifetime
from agentvisor.host.http.checkpoint_address import Address
from agentvisor.host.http.services import Services
from agentvisor.host.http.state_update import updated


async def create_with_history(services: Services, thread_id: ThreadId, body: ThreadCreate) -> None:
    """Create the thread with all of its history, or not at all: `UpdateRefused` leaves none.

    Where it exists already and `if_exists` is `do_nothing`, it stays as it is.
    """
    named = (body.metadata or {}).get("graph_id")
    if not isinstance(named, str) or not named:
        raise UpdateRefused(
            "supersteps: only a graph can make them, and metadata.graph_id names none", field="metadata"
        )
    agent = agent_of(services, named)
    try:
        await services.threads.create(thread_id, body.metadata or {}, exist_ok=False, lifetime=lifetime(body.ttl))
    except Conflict:
        if body.if_exists == "do_nothing":
            return
        raise
    supersteps = [[_update(one) for one in superstep.updates] for superstep in body.supersteps or ()]
    made: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    # A caller who leaves meanwhile must not leave a thread behind whose history is not there.
    services.afterwards.begin(
        f"history of thread {thread_id}", _made_or_gone(services, thread_id, agent, supersteps, made)
    )
    await asyncio.shield(made)


async def _made_or_gone(
    services: Services,
    thread_id: ThreadId,
    agent: str,
    supersteps: list[list[dict[str, JsonValue]]],
    made: asyncio.Future[None],
) -> None:
    try:
        await updated(services, thread_id, agent, supersteps, Address())
    except BaseException as error:
        try:
            with suppress(NotFound):
                await services.threads.delete(thread_id)
        finally:
            # Whatever has become of that: the caller waits for it.
            made.set_exception(error)
            made.exception()  # it may be that nobody waits
        if not isinstance(error, AgentVisorError):
            raise
    else:
        made.set_result(None)


def _update(given: HistoricUpdate) -> dict[str, JsonValue]:
    command = given.command.model_dump(exclude_unset=True) if given.command is not None else None
    return {"values": given.values, "command": command, "as_node": given.as_node}
