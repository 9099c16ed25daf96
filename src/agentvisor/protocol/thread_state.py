"""Thread state of core to messages and back."""

from __future__ import annotations

from agentvisor.core.ids import BlobKey
from agentvisor.core.thread_state import ChangeKind, StateChange, StateEntry, ThreadState
from agentvisor.protocol.v1 import store_pb2


def change_to_message(change: StateChange) -> store_pb2.ThreadStateChange:
    message = store_pb2.ThreadStateChange(
        scope=change.scope,
        key=change.key,
        revision=change.revision,
        at_ms=change.at_ms,
        is_list=change.is_list,
        value_items=change.value_items,
        change_id=change.change_id,
    )
    match change.kind:
        case ChangeKind.SET:
            message.set = change.blob or b""
        case ChangeKind.APPEND:
            message.append = change.blob or b""
        case ChangeKind.DELETE:
            message.delete = True
    return message


def change_from_message(message: store_pb2.ThreadStateChange) -> StateChange:
    kind, blob = kind_of(message)
    return StateChange(
        message.scope,
        message.key,
        kind,
        message.revision,
        message.at_ms,
        blob,
        message.is_list,
        message.value_items,
        message.change_id,
    )


def kind_of(message: store_pb2.ThreadStateChange | store_pb2.ChangeThreadState) -> tuple[ChangeKind, BlobKey | None]:
    """What a change does, and with which blob."""
    match message.WhichOneof("change"):
        case "set":
            return ChangeKind.SET, BlobKey(message.set)
        case "append":
            return ChangeKind.APPEND, BlobKey(message.append)
        case _:
            return ChangeKind.DELETE, None


def entry_to_message(entry: StateEntry) -> store_pb2.ThreadStateEntry:
    message = outline_of(entry)
    message.items.extend(entry.items)
    return message


def outline_of(entry: StateEntry) -> store_pb2.ThreadStateEntry:
    """An entry without the items that were appended."""
    return store_pb2.ThreadStateEntry(
        scope=entry.scope,
        key=entry.key,
        revision=entry.revision,
        updated_at_ms=entry.updated_at_ms,
        value=entry.value or b"",
        is_list=entry.is_list,
        value_items=entry.value_items,
        appended=len(entry.items),
    )


def entry_from_message(message: store_pb2.ThreadStateEntry) -> StateEntry:
    return StateEntry(
        message.scope,
        message.key,
        message.revision,
        message.updated_at_ms,
        BlobKey(message.value) if message.value else None,
        message.is_list,
        message.value_items,
        [BlobKey(one) for one in message.items],
    )


def changes_to_message(state: ThreadState) -> store_pb2.ThreadState:
    """What a thread's state has beside its entries."""
    made = [store_pb2.MadeChange(change_id=name, revision=revision) for name, revision in state.made.items()]
    return store_pb2.ThreadState(revision=state.revision, made=made)


def changes_from_message(message: store_pb2.ThreadState) -> ThreadState:
    return ThreadState(message.revision, made={one.change_id: one.revision for one in message.made})
