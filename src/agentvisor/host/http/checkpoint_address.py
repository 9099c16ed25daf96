"""A checkpoint that a caller names, to go on from: of the thread's own graph, or of one of its subgraphs."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentvisor.core.errors import InvalidInput, NotFound
from agentvisor.core.ids import ROOT, CheckpointId, Namespace, ThreadId, without_tasks
from agentvisor.core.records import Checkpoint
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
    asked = given.namespace if given is not None else ROOT
    named = checkpoint_id or (given.checkpoint_id if given is not None else None) or ""
    if asked == ROOT and not named:
        return Address()
    wanted = CheckpointId(named) if named else None
    # A subgraph that keeps its state has it under its own name, whatever task a state shows it in.
    for namespace in dict.fromkeys((asked, without_tasks(asked))):
        thread = await services.threads.read(
            thread_id, namespace=namespace, checkpoint_id=wanted, newest=0 if named else 1
        )
        found = thread.store.get(namespace, wanted)
        if found is not None:
            return _address_of(found.checkpoint, given)
    what = f"checkpoint {named[:80]!r} does not exist: thread {thread_id} has no such one" if named else ""
    where = f" in the namespace {asked[:80]!r}" if asked else ""
    raise NotFound((what or f"thread {thread_id} has no checkpoint") + where, checkpoint_id=named[:80])


def _address_of(found: Checkpoint, given: CheckpointAddress | None) -> Address:
    if found.namespace == ROOT:
        return Address(ROOT, found.checkpoint_id)
    parents = shown_metadata(found.metadata).get("parents")
    above = {ns: one for ns, one in parents.items() if isinstance(one, str)} if isinstance(parents, dict) else {}
    return Address(
        found.namespace, found.checkpoint_id, {**above, **_map_of(given), found.namespace: found.checkpoint_id}
    )


def _map_of(given: CheckpointAddress | None) -> dict[str, str]:
    asked = (given.checkpoint_map if given is not None else None) or {}
    for namespace, checkpoint_id in asked.items():
        if not isinstance(checkpoint_id, str):
            raise InvalidInput(
                f"checkpoint.checkpoint_map must map namespaces to checkpoint ids: {namespace[:80]!r} has no text",
                field="checkpoint.checkpoint_map",
            )
    return {namespace: str(one) for namespace, one in asked.items()}
