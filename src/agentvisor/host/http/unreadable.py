"""A thread that cannot be read here, in a list: it must not keep all others from being shown."""

from __future__ import annotations

from agentvisor.core.errors import AgentVisorError, NotFound
from agentvisor.core.ids import ThreadId
from agentvisor.host.http.services import Services
from agentvisor.host.http.times import iso
from agentvisor.host.render_typed import Json


async def unreadable_shown(
    services: Services, thread_id: ThreadId, error: AgentVisorError, status: str | None
) -> dict[str, Json]:
    """As much of a Thread as Temporal says of it, and why there is no more; `NotFound` where it is gone meanwhile.

    `status`: the one by which Temporal's index has found it, if it was asked for one.
    """
    try:
        began = iso(await services.threads.began_ms(thread_id))
    except NotFound:
        raise
    except AgentVisorError:
        began = None  # Temporal does not say that either
    return {
        "thread_id": thread_id,
        "created_at": began,
        "updated_at": began,
        "state_updated_at": began,
        "metadata": {},
        "status": status or "error",
        "config": {},
        "values": None,
        "interrupts": {},
        "error": {"error": type(error).__name__, "message": error.message},
    }
