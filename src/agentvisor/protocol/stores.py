"""Stores of core to messages and back: whole, or in the parts that a page of a read holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from agentvisor.core.ids import Namespace
from agentvisor.core.interrupts import Interrupts
from agentvisor.core.questions import Questions
from agentvisor.core.records import Checkpoint, CheckpointKey
from agentvisor.core.store import Store
from agentvisor.protocol.convert import (
    blob_from_message,
    blob_to_message,
    bone_from_message,
    bone_to_message,
    checkpoint_from_message,
    checkpoint_to_message,
    projection_from_message,
    projection_to_message,
    writes_from_message,
    writes_to_message,
)
from agentvisor.protocol.effects import (
    effect_from_message,
    effect_to_message,
    questions_from_message,
    questions_to_message,
)
from agentvisor.protocol.interrupts import interrupts_from_message, interrupts_to_message
from agentvisor.protocol.thread_state import (
    changes_from_message,
    changes_to_message,
    entry_from_message,
    entry_to_message,
)
from agentvisor.protocol.v1 import store_pb2, thread_pb2


def store_to_message(store: Store, checkpoints: Iterable[Checkpoint], *, blobs: bool) -> thread_pb2.Store:
    """The part of a store that belongs to these checkpoints, and what belongs to none."""
    message = checkpoints_to_message(store, checkpoints)
    for part in chain(loose_parts(store), state_parts(store)):
        add_loose(message, part)
    message.blobs.extend(blob_to_message(one) for one in store.blobs.values() if blobs)
    return message


def checkpoints_to_message(store: Store, checkpoints: Iterable[Checkpoint]) -> thread_pb2.Store:
    """These checkpoints with their writes and projections."""
    message = thread_pb2.Store()
    for one in checkpoints:
        message.checkpoints.add(checkpoint=checkpoint_to_message(one))
        message.orphans.extend(writes_to_message(task) for task in store.pending(one.key))
        if (projection := store.projections.get(one.key)) is not None:
            message.projections.append(projection_to_message(projection))
    return message


Loose = (
    store_pb2.TaskWrites
    | store_pb2.Projection
    | store_pb2.Bone
    | store_pb2.Effect
    | store_pb2.Questions
    | store_pb2.Interrupts
    | store_pb2.Turn
    | store_pb2.AgentAsks
    | thread_pb2.NamespaceChannels
    | store_pb2.ThreadStateEntry
    | store_pb2.ThreadState
)


def loose_parts(store: Store) -> Iterator[Loose]:
    """What belongs to no checkpoint that is here, thread state aside.

    Bones, writes and projections without one, namespaces' channels, effects, questions.
    """
    for group in store.bones.values():
        for bone in group.values():
            yield bone_to_message(bone)
            yield from (writes_to_message(task) for task in store.pending(bone.key))
    for namespace, orphans in store.orphans.items():
        for key in (CheckpointKey(namespace, one) for one in sorted(orphans)):
            yield from (writes_to_message(task) for task in store.pending(key))
            if (projection := store.projections.get(key)) is not None:
                yield projection_to_message(projection)
    for namespace, names in store.channels.items():
        yield thread_pb2.NamespaceChannels(namespace=namespace, channels=names)
    yield from map(effect_to_message, store.effects)
    if store.questions.asked:
        yield questions_to_message(store.questions)
    if store.interrupts:
        yield interrupts_to_message(store.interrupts)
    if store.turn:
        yield store_pb2.Turn(agent=store.turn)
    yield from others_to_messages(store.others)


def state_parts(store: Store) -> Iterator[Loose]:
    """Thread state, entry by entry."""
    yield from map(entry_to_message, store.state)
    if store.state.revision:
        yield changes_to_message(store.state)


def add_loose(message: thread_pb2.Store, part: Loose) -> None:
    """Put a loose part where it belongs."""
    match part:
        case store_pb2.TaskWrites():
            message.orphans.append(part)
        case store_pb2.Projection():
            message.projections.append(part)
        case store_pb2.Bone():
            message.bones.append(part)
        case store_pb2.Effect():
            message.effects.append(part)
        case store_pb2.Questions():
            message.questions.CopyFrom(part)
        case store_pb2.Interrupts():
            message.interrupts.CopyFrom(part)
        case store_pb2.Turn():
            message.turn.CopyFrom(part)
        case store_pb2.AgentAsks():
            message.others.append(part)
        case thread_pb2.NamespaceChannels():
            message.channels.append(part)
        case store_pb2.ThreadStateEntry():
            message.thread_state.append(part)
        case store_pb2.ThreadState():
            message.thread_state_changes.CopyFrom(part)


def store_from_message(message: thread_pb2.Store) -> Store:
    store = Store()
    for found in message.checkpoints:
        store.put_checkpoint(checkpoint_from_message(found.checkpoint))
    for writes in message.orphans:
        store.put_writes(writes_from_message(writes))
    for projection in message.projections:
        store.project(projection_from_message(projection))
    for names in message.channels:
        store.channels[Namespace(names.namespace)] = tuple(names.channels)
    for bone in message.bones:
        store.add_bone(bone_from_message(bone))
    for blob in message.blobs:
        store.add_blob(blob_from_message(blob))
    for effect in message.effects:
        store.effects.record(effect_from_message(effect))
    store.questions = questions_from_message(message.questions)
    store.state = changes_from_message(message.thread_state_changes)
    for entry in message.thread_state:
        store.add_entry(entry_from_message(entry))
    store.interrupts = interrupts_from_message(message.interrupts)
    store.turn = message.turn.agent
    store.others = others_from_messages(message.others)
    return store


Others = dict[str, tuple[Questions, Interrupts]]
"""What agents of a thread ask, by agent (core/asking.py)."""


def others_to_messages(others: Others) -> list[store_pb2.AgentAsks]:
    return [
        store_pb2.AgentAsks(
            agent=agent, questions=questions_to_message(questions), interrupts=interrupts_to_message(interrupts)
        )
        for agent, (questions, interrupts) in others.items()
    ]


def others_from_messages(messages: Iterable[store_pb2.AgentAsks]) -> Others:
    return {
        one.agent: (questions_from_message(one.questions), interrupts_from_message(one.interrupts)) for one in messages
    }
