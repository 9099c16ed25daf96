"""A checkpoint that a caller names, to go on from: of the thread's own graph, or of one of its subgraphs."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentvisor.core.errors import InvalidInput, NotFound
from agentvisor.core.ids import ROOT, CheckpointId, Namespace, ThreadId
from agentvisor.host.http.run_create import CheckpointAddress
from agentvisor.host.http.services import Services
from agentvisor.host.render import shown_metadata


@dataclass(frozen=True, slots=True)
class Address:
    """A checkpoint that is there; without an id, whatever is the latest of the root when it is needed."""

    namespace: Namespace = ROOT
    checkpoint_id: str = ""
    map: dict[str, str] = field(default_factory=dict[str, str])
    """Of a subgraph's: the checkpoint of each namespace from the root down to it."""


async def addressed(
    services: Services, thread_id: ThreadId, given: CheckpointAddress | None, checkpoint_id: str | None = None
) -> Address:
    """What the caller names, or `NotFound`: LangGraph would go on from an empty state."""
    namespace = given.namespace if given is not None else ROOT
    named = checkpoint_id or (given.checkpoint_id if given is not None else None) or ""
    if namespace == ROOT and not named:
        return Address()
    wanted = CheckpointId(named) if named else None
    thread = await services.threads.read(thread_id, namespace=namespace, checkpoint_id=wanted, newest=0 if named else 1)
    found = thread.store.get(namespace, wanted)
    if found is None:
        where = f" in the namespace {namespace[:80]!r}" if namespace else ""
        raise NotFound(
            f"checkpoint {named[:80]!r} does not exist: thread {thread_id} has no such one{where}",
            checkpoint_id=named[:80],
        )
    if namespace == ROOT:
        return Address(ROOT, named)
    here = found.checkpoint.checkpoint_id
    parents = shown_metadata(found.checkpoint.metadata).get("parents")
    ancestors = {ns: one for ns, one in parents.items() if isinstance(one, str)} if isinstance(parents, dict) else {}
    return Address(namespace, here, {**ancestors, **_map_of(given), namespace: here})


def _map_of(given: CheckpointAddress | None) -> dict[str, str]:
    asked = (given.checkpoint_map if given is not None else None) or {}
    for namespace, checkpoint_id in asked.items():
        if not isinstance(checkpoint_id, str):
            raise InvalidInput(
                f"checkpoint.checkpoint_map must map namespaces to checkpoint ids: {namespace[:80]!r} has no text",
                field="checkpoint.checkpoint_map",
            )
    return {namespace: str(one) for namespace, one in asked.items()}
