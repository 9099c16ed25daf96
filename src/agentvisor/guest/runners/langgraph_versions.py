"""What LangGraph has had since 1.2 alone: a graph that can be asked to make way when its host stops.

An older one works on until the host ends its process. The run then goes on elsewhere from its last checkpoint, and the
step that was cut off is done again, but for the tasks of it that had finished.
"""

from __future__ import annotations

from langgraph import errors, runtime

from agentvisor.client.socketpair import Channel


def drain_options(channel: Channel) -> dict[str, object]:
    """The arguments of `astream` with which the graph makes way when the channel asks for it."""
    if not hasattr(runtime, "RunControl"):
        return {}
    from agentvisor.guest.runners.langgraph_drain import RootControl

    return {"control": RootControl(channel)}


def made_way(error: Exception) -> bool:
    """Whether it says that a graph ended because it was asked to."""
    drained: type[Exception] | None = getattr(errors, "GraphDrained", None)
    return drained is not None and isinstance(error, drained)
