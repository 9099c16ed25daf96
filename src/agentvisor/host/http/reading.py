"""Reads threads and renders them: records first, then the blobs that are shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

from agentvisor.core.ids import ROOT, CheckpointId, Namespace, ThreadId, without_tasks
from agentvisor.core.records import Checkpoint, CheckpointTuple
from agentvisor.core.runs import RunStatus
from agentvisor.core.saves import is_save
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread
from agentvisor.host.external.storage import Patience
from agentvisor.host.http.questions import asking, questions, with_questions, with_terms
from agentvisor.host.http.services import Services
from agentvisor.host.http.shapes import output_json, thread_json, ttl_json
from agentvisor.host.render import Blobs, ThreadStates, blobs_of_states, shown_metadata
from agentvisor.host.render_delta import blobs_of_deltas, open_channels
from agentvisor.host.render_typed import Json

_OFF_THE_LOOP = 256 * 1024
"""Bytes of values over which rendering would hold up everybody else."""

_Shown = TypeVar("_Shown")


async def thread_shown(
    services: Services,
    thread_id: ThreadId,
    *,
    with_values: bool = True,
    patience: Patience | None = None,
    with_ttl: bool = False,
) -> dict[str, Json]:
    """A Thread, with the values of its root's head.

    With `patience`, those that external storage does not give in that time are marked `unavailable`.
    """
    thread = await services.threads.get(thread_id)
    values, interrupts = await _head(services, thread, patience) if with_values else (None, {})
    shown = thread_json(thread, values, interrupts)
    return {**shown, "ttl": ttl_json(thread)} if with_ttl else shown


async def created_shown(services: Services, thread: Thread) -> dict[str, Json]:
    """A Thread that was just read; it may be gone by now."""
    return thread_json(thread, *await _head(services, thread))


async def values_shown(services: Services, thread: Thread) -> tuple[Json, list[Json]]:
    """The values of a thread's root, and the questions that wait for an answer."""
    values, interrupts = await _head(services, thread)
    return values, [one for asked in interrupts.values() if isinstance(asked, list) for one in asked]


async def _head(services: Services, thread: Thread, patience: Patience | None = None) -> tuple[Json, dict[str, Json]]:
    head, asked = _current(thread.store), questions(thread)
    if head is None:
        return await _last_output(services, thread), asked
    states, blobs = await _states(services, thread, [head.checkpoint], patience)
    return await _rendered(blobs, lambda: (states.values(head.checkpoint), {**states.interrupts(), **asked}))


async def _last_output(services: Services, thread: Thread) -> Json:
    """What the last run of a plain agent returned: such a thread has no checkpoints."""
    last = thread.last_agent_run
    if last is None or last.status is not RunStatus.SUCCESS:
        return None
    return output_json(await services.threads.get_run(thread.thread_id, last.run_id))


async def latest_state(services: Services, thread_id: ThreadId, *, subgraphs: bool) -> dict[str, Json]:
    """The state of the root as it stands now; of a plain agent, what it returned."""
    thread = await services.threads.get(thread_id)
    head = _current(thread.store)
    if head is None:
        output = await _last_output(services, thread)
        empty = ThreadStates(thread_id, thread.store, {}).empty() | asking(thread)
        return {**empty, "values": output} if output is not None else empty
    shown = [head.checkpoint, *(_heads(thread) if subgraphs else ())]
    states, blobs = await _states(services, thread, shown)
    state = await _rendered(blobs, lambda: states.state(head, live=True, subgraphs=subgraphs))
    if is_save(head.checkpoint.namespace):
        return {**state, **asking(thread)}
    return with_questions(with_terms(state, thread), thread)


def _current(store: Store) -> CheckpointTuple | None:
    """What a thread stands at: the head of its graph; where there is no graph, the latest of its saves."""
    root = store.get(ROOT)
    if root is not None:
        return root
    save = store.latest_save()
    return None if save is None else store.get(*save.key)


async def state_at(
    services: Services,
    thread_id: ThreadId,
    namespace: Namespace,
    checkpoint_id: CheckpointId | None,
    *,
    subgraphs: bool,
) -> dict[str, Json]:
    """The state of a namespace at a checkpoint, or at its latest; empty where there is none."""
    if checkpoint_id is None and namespace == ROOT:
        return await latest_state(services, thread_id, subgraphs=subgraphs)
    if checkpoint_id is None:
        thread = await services.threads.get(thread_id)
        if thread.store.get(namespace) is None and thread.store.get(without_tasks(namespace)) is not None:
            namespace = without_tasks(namespace)
    else:
        thread = await services.threads.read(thread_id, namespace=namespace, checkpoint_id=checkpoint_id)
    found = thread.store.get(namespace, checkpoint_id)
    if found is None and namespace == ROOT and checkpoint_id is not None:
        thread = await services.threads.read(thread_id, checkpoint_id=checkpoint_id, saves=True)
        found = _save_of(thread.store, checkpoint_id)
    if found is None:
        return ThreadStates(thread_id, thread.store, {}).empty(namespace, checkpoint_id)
    if subgraphs and checkpoint_id is not None:
        _add_heads(thread.store, (await services.threads.get(thread_id)).store)
    shown = [found.checkpoint, *(_heads(thread) if subgraphs else ())]
    states, blobs = await _states(services, thread, shown)
    return await _rendered(blobs, lambda: states.state(found, live=checkpoint_id is None, subgraphs=subgraphs))


async def history(
    services: Services,
    thread_id: ThreadId,
    *,
    namespace: Namespace,
    checkpoint_id: CheckpointId | None,
    before: CheckpointId | None,
    metadata: dict[str, Json],
    limit: int,
) -> list[dict[str, Json]]:
    """States of a namespace, newest first, whose metadata has these values; only one where an id is given."""
    newest = 0 if metadata else limit

    async def read(within: Namespace | None, *, saves: bool | None) -> tuple[Thread, list[Checkpoint]]:
        thread = await services.threads.read(
            thread_id, namespace=within, checkpoint_id=checkpoint_id, before=before, newest=newest, saves=saves
        )
        listed = thread.store.newest_first(within, checkpoint_id=checkpoint_id, before=before, saves=saves)
        return thread, [one for one in listed if _has(one, metadata)][:limit]

    thread, chosen = await read(namespace, saves=None)
    if not chosen and namespace == ROOT and (await services.threads.get(thread_id)).store.get(ROOT) is None:
        thread, chosen = await read(None, saves=True)  # there is no graph: what is saved is the thread's history
    found = [each for one in chosen if (each := thread.store.get(*one.key)) is not None]
    states, blobs = await _states(services, thread, chosen)
    return await _rendered(blobs, lambda: [states.state(one, live=False) for one in found])


def _save_of(store: Store, checkpoint_id: CheckpointId) -> CheckpointTuple | None:
    save = next(store.newest_first(checkpoint_id=checkpoint_id, saves=True), None)
    return None if save is None else store.get(*save.key)


def _has(checkpoint: Checkpoint, metadata: dict[str, Json]) -> bool:
    shown = shown_metadata(checkpoint.metadata) if metadata else {}
    return all(name in shown and shown[name] == value for name, value in metadata.items())


def _add_heads(store: Store, heads: Store) -> None:
    """The latest of every namespace, beside what was read."""
    for checkpoint in heads.all_checkpoints():
        store.put_checkpoint(checkpoint)
        for writes in heads.pending(checkpoint.key):
            store.put_writes(writes)
    for projection in heads.projections.values():
        store.project(projection)


def _heads(thread: Thread) -> Iterable[Checkpoint]:
    """The latest of every namespace of a graph."""
    for namespace, head in thread.store.heads.items():
        if not is_save(namespace):
            yield thread.store.checkpoints[namespace][head]


async def _states(
    services: Services, thread: Thread, checkpoints: Iterable[Checkpoint], patience: Patience | None = None
) -> tuple[ThreadStates, Blobs]:
    shown = list(checkpoints)
    ancestors = {
        namespace: (await services.threads.read(thread.thread_id, namespace=namespace)).store
        for namespace in dict.fromkeys(one.namespace for one in shown if open_channels(one))
    }
    keys = blobs_of_states(thread.store, shown) | blobs_of_deltas(shown, ancestors)
    blobs = await services.threads.blobs(thread.thread_id, keys, patience=patience) if keys else {}
    return ThreadStates(thread.thread_id, thread.store, blobs, ancestors), blobs


async def _rendered(blobs: Blobs, render: Callable[[], _Shown]) -> _Shown:
    size = sum(len(data) for _, data in blobs.values())
    return await asyncio.to_thread(render) if size > _OFF_THE_LOOP else render()
