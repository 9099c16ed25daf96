"""Values of core to messages of the protocol and back: checkpoints, blobs, writes, operations, logs."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.struct_pb2 import Struct

from agentvisor.core.effects import Effect, ForgetEffect
from agentvisor.core.errors import Corrupt
from agentvisor.core.ids import BlobKey, CheckpointId, Namespace
from agentvisor.core.interrupts import Note, Report, StillWaiting
from agentvisor.core.questions import Answer, Ask
from agentvisor.core.records import (
    Blob,
    Bone,
    Checkpoint,
    CheckpointTuple,
    DeleteForRuns,
    Encoding,
    Operation,
    ProjectedTask,
    Projection,
    Prune,
    PutBlobs,
    TaskWrites,
    Write,
)
from agentvisor.core.thread_state import StateChange
from agentvisor.protocol.effects import (
    answer_from_message,
    ask_from_message,
    ask_to_message,
    effect_from_message,
    effect_to_message,
)
from agentvisor.protocol.interrupts import (
    interrupt_to_message,
    note_from_message,
    report_from_message,
    report_to_message,
    still_waiting_from_message,
    still_waiting_to_message,
)
from agentvisor.protocol.thread_state import change_from_message, change_to_message
from agentvisor.protocol.v1 import journal_pb2, store_pb2

_STRATEGIES = {True: "keep_latest", False: "delete"}


class UnknownOperation(RuntimeError):
    """A newer version journalled this: the workflow task must fail, so that a newer host takes it."""


def blob_to_message(blob: Blob) -> store_pb2.Blob:
    return store_pb2.Blob(
        key=blob.key,
        type=blob.type,
        encoding=store_pb2.Encoding.ValueType(blob.encoding),
        data=blob.data,
        base=blob.base or b"",
        size=blob.size,
        depth=blob.depth,
        location=blob.location,
        stored_size=blob.stored_size,
    )


def blob_from_message(message: store_pb2.Blob) -> Blob:
    return Blob(
        key=BlobKey(message.key),
        type=message.type,
        encoding=_encoding(message.encoding),
        data=message.data,
        base=BlobKey(message.base) if message.base else None,
        size=message.size,
        depth=message.depth,
        location=message.location,
        stored_size=message.stored_size,
    )


def _encoding(number: int) -> Encoding:
    try:
        return Encoding(number)
    except ValueError:
        raise Corrupt(f"a blob of unknown encoding {number}: it may come from a newer version of AgentVisor") from None


def checkpoint_to_message(checkpoint: Checkpoint) -> store_pb2.Checkpoint:
    message = store_pb2.Checkpoint(
        namespace=checkpoint.namespace,
        checkpoint_id=checkpoint.checkpoint_id,
        parent_id=checkpoint.parent_id or "",
        type=checkpoint.type,
        record=checkpoint.record,
        channels=[store_pb2.ChannelValue(channel=name, key=key or b"") for name, key in checkpoint.channels.items()],
        ts=checkpoint.ts,
        made_by=checkpoint.made_by,
    )
    message.metadata.ParseFromString(checkpoint.metadata)
    return message


def checkpoint_from_message(message: store_pb2.Checkpoint) -> Checkpoint:
    return Checkpoint(
        namespace=Namespace(message.namespace),
        checkpoint_id=CheckpointId(message.checkpoint_id),
        parent_id=CheckpointId(message.parent_id) if message.parent_id else None,
        type=message.type,
        record=message.record,
        metadata=struct_to_bytes(message.metadata),
        channels={one.channel: BlobKey(one.key) if one.key else None for one in message.channels},
        ts=message.ts,
        root_id=CheckpointId(_text(_field(message.metadata, "parents"), "")) or None,
        run_id=_text(message.metadata, "run_id"),
        made_by=message.made_by,
        delta_channels=tuple(sorted(_field(message.metadata, "counters_since_delta_snapshot").fields)),
    )


def bone_to_message(bone: Bone) -> store_pb2.Bone:
    return store_pb2.Bone(
        namespace=bone.namespace,
        checkpoint_id=bone.checkpoint_id,
        parent_id=bone.parent_id or "",
        channels=[store_pb2.ChannelValue(channel=name, key=key) for name, key in bone.channels.items()],
    )


def bone_from_message(message: store_pb2.Bone) -> Bone:
    return Bone(
        Namespace(message.namespace),
        CheckpointId(message.checkpoint_id),
        CheckpointId(message.parent_id) if message.parent_id else None,
        {one.channel: BlobKey(one.key) for one in message.channels},
    )


def _field(struct: Struct, name: str) -> Struct:
    """A table in LangGraph's metadata; empty where there is none."""
    return struct.fields[name].struct_value if name in struct.fields else Struct()


def _text(struct: Struct, name: str) -> str:
    return struct.fields[name].string_value if name in struct.fields else ""


def struct_to_bytes(struct: Struct) -> bytes:
    return struct.SerializeToString(deterministic=True)


def writes_to_message(writes: TaskWrites) -> store_pb2.TaskWrites:
    return store_pb2.TaskWrites(
        namespace=writes.namespace,
        checkpoint_id=writes.checkpoint_id,
        task_id=writes.task_id,
        task_path=writes.task_path,
        writes=[
            store_pb2.Write(
                idx=one.idx,
                channel=one.channel,
                type=one.type,
                data=one.data,
                size=one.size,
                is_state=one.is_state,
                key=one.key or b"",
            )
            for one in writes.writes
        ],
    )


def writes_from_message(message: store_pb2.TaskWrites) -> TaskWrites:
    return TaskWrites(
        namespace=Namespace(message.namespace),
        checkpoint_id=CheckpointId(message.checkpoint_id),
        task_id=message.task_id,
        task_path=message.task_path,
        writes=tuple(
            Write(
                one.idx,
                one.channel,
                one.type,
                one.data,
                one.size,
                one.is_state,
                BlobKey(one.key) if one.key else None,
            )
            for one in message.writes
        ),
    )


def projection_to_message(projection: Projection) -> store_pb2.Projection:
    return store_pb2.Projection(
        namespace=projection.namespace,
        checkpoint_id=projection.checkpoint_id,
        next=projection.next,
        tasks=[
            store_pb2.ProjectedTask(id=one.id, name=one.name, path=one.path, subgraph=one.subgraph)
            for one in projection.tasks
        ],
        channels=projection.channels,
        has_tasks=True,
    )


def projection_from_message(message: store_pb2.Projection) -> Projection:
    return Projection(
        namespace=Namespace(message.namespace),
        checkpoint_id=CheckpointId(message.checkpoint_id),
        next=tuple(message.next),
        tasks=tuple(ProjectedTask(one.id, one.name, one.path, one.subgraph) for one in message.tasks),
        channels=tuple(message.channels),
    )


def tuple_to_message(found: CheckpointTuple) -> store_pb2.CheckpointTuple:
    return store_pb2.CheckpointTuple(
        checkpoint=checkpoint_to_message(found.checkpoint), pending=[writes_to_message(one) for one in found.pending]
    )


def operation_to_bytes(operation: Operation) -> bytes:
    """The entry of a log."""
    match operation:
        case PutBlobs(blobs):
            message = journal_pb2.Operation(
                put_blobs=journal_pb2.PutBlobs(blobs=[blob_to_message(one) for one in blobs])
            )
        case Checkpoint():
            message = journal_pb2.Operation(put_checkpoint=checkpoint_to_message(operation))
        case TaskWrites():
            message = journal_pb2.Operation(put_writes=writes_to_message(operation))
        case Projection():
            message = journal_pb2.Operation(project=projection_to_message(operation))
        case DeleteForRuns(run_ids):
            message = journal_pb2.Operation(delete_for_runs=store_pb2.DeleteForRuns(run_ids=sorted(run_ids)))
        case Bone():
            message = journal_pb2.Operation(put_bone=bone_to_message(operation))
        case Prune(keep_latest):
            message = journal_pb2.Operation(prune=store_pb2.PruneThread(strategy=_STRATEGIES[keep_latest]))
        case Effect():
            message = journal_pb2.Operation(effect=effect_to_message(operation))
        case ForgetEffect(scope, key):
            message = journal_pb2.Operation(forget_effect=store_pb2.ForgetEffect(scope=scope, key=key))
        case Ask():
            message = journal_pb2.Operation(ask=ask_to_message(operation))
        case Answer(question, answer, run_id):
            message = journal_pb2.Operation(answer=store_pb2.Answer(id=question, answer=answer, run_id=run_id))
        case StateChange():
            message = journal_pb2.Operation(thread_state=change_to_message(operation))
        case Report():
            message = journal_pb2.Operation(report=report_to_message(operation))
        case Note(interrupt):
            message = journal_pb2.Operation(note=interrupt_to_message(interrupt))
        case StillWaiting():
            message = journal_pb2.Operation(still_waiting=still_waiting_to_message(operation))
    return message.SerializeToString()


def operation_from_bytes(entry: bytes) -> Operation:
    """The operation of a log's entry; `UnknownOperation` for a kind that this version does not know."""
    message = journal_pb2.Operation.FromString(entry)
    kind = message.WhichOneof("kind")
    match kind:
        case "put_blobs":
            return PutBlobs(tuple(blob_from_message(one) for one in message.put_blobs.blobs))
        case "put_checkpoint":
            return checkpoint_from_message(message.put_checkpoint)
        case "put_writes":
            return writes_from_message(message.put_writes)
        case "project":
            return projection_from_message(message.project)
        case "delete_for_runs":
            return DeleteForRuns(frozenset(message.delete_for_runs.run_ids))
        case "put_bone":
            return bone_from_message(message.put_bone)
        case "prune":
            return Prune(keep_latest=message.prune.strategy == _STRATEGIES[True])
        case "effect":
            return effect_from_message(message.effect)
        case "forget_effect":
            return ForgetEffect(message.forget_effect.scope, message.forget_effect.key)
        case "ask":
            return ask_from_message(message.ask)
        case "answer":
            return answer_from_message(message.answer)
        case "thread_state":
            return change_from_message(message.thread_state)
        case "report":
            return report_from_message(message.report)
        case "note":
            return note_from_message(message.note)
        case "still_waiting":
            return still_waiting_from_message(message.still_waiting)
        case _:
            raise UnknownOperation(
                f"operation kind {kind or 'unknown'} is not known to this version: upgrade this host"
            )


def operations_from(entries: Iterable[bytes]) -> list[Operation]:
    return [operation_from_bytes(entry) for entry in entries]
