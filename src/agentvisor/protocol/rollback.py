"""What it takes to undo a run: to messages and back."""

from __future__ import annotations

from collections.abc import Iterable

from agentvisor.core.ids import CheckpointId, Namespace, RunId
from agentvisor.core.records import CheckpointKey, TaskWrites, Write
from agentvisor.core.rollback import Before
from agentvisor.core.store import Store
from agentvisor.protocol.convert import (
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
from agentvisor.protocol.stores import others_from_messages, others_to_messages
from agentvisor.protocol.v1 import store_pb2, thread_pb2


def before_to_message(before: Before, store: Store) -> thread_pb2.Before:
    """What is still of use of it: checkpoints of the run that were pruned meanwhile need not be undone."""
    added, replaced = list[store_pb2.TaskWrites](), list[store_pb2.TaskWrites]()
    for key, slots in before.written.items():
        for (task_id, idx), was in slots.items():
            write = was or Write(idx, "", "", b"", 0)
            message = writes_to_message(TaskWrites(key.namespace, key.checkpoint_id, task_id, "", (write,)))
            (added if was is None else replaced).append(message)
    return thread_pb2.Before(
        run_id=before.run_id,
        heads=_names(CheckpointKey(namespace, head) for namespace, head in before.heads.items()),
        put=_names(key for key in before.put if store.is_here(key)),
        added=added,
        replaced=replaced,
        effects=map(effect_to_message, before.effects.values()),
        questions=questions_to_message(before.questions),
        interrupts=interrupts_to_message(before.interrupts),
        lost=before.lost,
        projected=[projection_to_message(was) for was in before.projected.values() if was is not None],
        unprojected=_names(key for key, was in before.projected.items() if was is None),
        turn=store_pb2.Turn(agent=before.turn),
        others=others_to_messages(before.others),
    )


def before_from_message(message: thread_pb2.Before, store: Store) -> Before:
    """It, with the values that it needs held in the store."""
    effects = list(map(effect_from_message, message.effects))
    before = Before(
        RunId(message.run_id),
        questions_from_message(message.questions),
        interrupts_from_message(message.interrupts),
        {key.namespace: key.checkpoint_id for key in map(_key, message.heads)},
        dict.fromkeys(map(_key, message.put)),
        projected={
            **{one.key: one for one in map(projection_from_message, message.projected)},
            **dict.fromkeys(map(_key, message.unprojected)),
        },
        effects={(one.place.scope, one.place.key): one for one in effects},
        lost=message.lost,
        turn=message.turn.agent,
        others=others_from_messages(message.others),
    )
    for one in map(writes_from_message, message.added):
        slots = before.written.setdefault(one.key, {})
        slots.update({(one.task_id, write.idx): None for write in one.writes})
    for one in map(writes_from_message, message.replaced):
        slots = before.written.setdefault(one.key, {})
        slots.update({(one.task_id, write.idx): write for write in one.writes})
    before.hold(store)
    return before


def _names(keys: Iterable[CheckpointKey]) -> list[thread_pb2.CheckpointName]:
    return [thread_pb2.CheckpointName(namespace=key.namespace, checkpoint_id=key.checkpoint_id) for key in keys]


def _key(message: thread_pb2.CheckpointName) -> CheckpointKey:
    return CheckpointKey(Namespace(message.namespace), CheckpointId(message.checkpoint_id))
