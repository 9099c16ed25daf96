"""Answers to readers of a thread's state: pages of records first, then blobs by key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice

from google.protobuf.struct_pb2 import Struct

from agentvisor.core.ids import AttemptId, BlobKey, CheckpointId, Namespace, RunId
from agentvisor.core.journal import Stretch, arrival
from agentvisor.core.records import Checkpoint
from agentvisor.core.runs import RunStatus
from agentvisor.core.saves import is_save
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread
from agentvisor.core.weighing import state_bytes, stored_bytes
from agentvisor.protocol.convert import blob_to_message, operations_from, struct_to_bytes
from agentvisor.protocol.metadata import whole_float
from agentvisor.protocol.stores import Loose, add_loose, checkpoints_to_message, loose_parts, state_parts
from agentvisor.protocol.threads import GIVEN, run_to_message, source_of, thread_from_message, thread_to_message
from agentvisor.protocol.v1 import journal_pb2, run_pb2, store_pb2, thread_pb2

PAGE_BYTES = 1_500_000
"""Of a query's answer; Temporal refuses one over 2 MB."""
RUNS_BYTES = 300_000
"""Of the runs in it, where not every one is asked for."""
CONFIG_BYTES = 8_000
"""Of the caller's configuration of such a run."""

KEYWORDS = 20
KEYWORD_BYTES = 200
"""Terms of one thread in Temporal's index, and bytes of each."""
KEYWORDS_BYTES = 1_900
"""Of all of them, as JSON: Temporal ends a workflow that gives more than 2 KB (limit.searchAttributesSizeOfValue)."""
_FIRST = ("graph_id", "assistant_id")
"""Clients search by these: they must not fall off where there is much else."""
_AMBIGUOUS = re.compile(r"=.*|true|false|-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.DOTALL)
_UNSAFE = re.compile(r"[^a-z0-9_.:/@+=,;() -]|\A | \Z")


def read_thread(thread: Thread, asked: thread_pb2.ReadThread) -> thread_pb2.ReadThreadReply:
    """What was asked for, from the cursor on, about PAGE_BYTES of them with the runs; what has no checkpoint last.

    The cursor is one more than a position, so that runs may have the first page to themselves. Where every run is asked
    for they come behind all else, page by page.
    """
    store, first = thread.store, asked.cursor == 0
    selected = _selected(store, asked)
    loose = [*_loose(thread, asked), *_every_run(thread, asked), *_inputs_apart(thread, asked)]
    message = thread_to_message(thread, thread_pb2.Store(), whole_run=RunId(asked.whole_run_id))
    if asked.HasField("page"):
        _leave_out_ended(message)
    if first and not asked.runs:
        _leave_out_runs(message, asked.whole_run_id)
    else:
        message.ClearField("runs")
    begins = max(0, asked.cursor - 1)
    size, position, many = message.ByteSize(), begins, len(selected) + len(loose)
    while position < many:
        if position < len(selected):
            part = checkpoints_to_message(store, [selected[position]])
            cost = part.ByteSize()
        else:
            part = loose[position - len(selected)]
            cost = part.ByteSize() + 8
        if (position > begins or first) and size + cost > PAGE_BYTES:
            break
        if isinstance(part, run_pb2.Run):
            message.runs.append(part)
        elif isinstance(part, thread_pb2.Store):
            message.store.MergeFrom(part)
        else:
            add_loose(message.store, part)
        size += cost
        position += 1
    return thread_pb2.ReadThreadReply(
        thread=message,
        cursor=position + 1 if position < many else 0,
        unsheddable_bytes=thread.unsheddable_bytes() if first else 0,
        revision=thread.revision,
        every_run=bool(asked.runs),
    )


def _every_run(thread: Thread, asked: thread_pb2.ReadThread) -> Iterator[run_pb2.Run]:
    if not asked.runs:
        return
    for run in thread.runs.values():
        message = run_to_message(run, whole=_is_whole(run.run_id, asked))
        _leave_out_large(message, whole=_is_whole(run.run_id, asked))
        yield message


def _is_whole(run_id: str, asked: thread_pb2.ReadThread) -> bool:
    return asked.runs == thread_pb2.RUNS_ASKED_WHOLE or run_id == asked.whole_run_id


def _inputs_apart(thread: Thread, asked: thread_pb2.ReadThread) -> Iterator[run_pb2.Run]:
    """What `_leave_out_large` leaves out of runs that are asked for whole."""
    for run in thread.runs.values() if asked.inputs_apart else ():
        message = run_to_message(run, whole=_is_whole(run.run_id, asked))
        if _is_large(message):
            yield run_pb2.Run(spec=message.spec)


def join_inputs(runs: Iterable[run_pb2.Run]) -> list[run_pb2.Run]:
    """The runs of all pages, each with the input that came apart from it."""
    whole = dict[str, run_pb2.Run]()
    for run in runs:
        if run.spec.run_id in whole:
            whole[run.spec.run_id].spec.CopyFrom(run.spec)
        else:
            whole[run.spec.run_id] = run
    return list(whole.values())


def _leave_out_runs(message: thread_pb2.Thread, whole_run_id: str) -> None:
    """Keep the answer under Temporal's limit: the oldest of many ended runs, a large configuration, a large input."""
    kept, size = list[run_pb2.Run](), 0
    for run in reversed(message.runs):
        whole = run.spec.run_id == whole_run_id
        _leave_out_large(run, whole=whole)
        if whole or size < RUNS_BYTES or not RunStatus(run.status).terminal:
            kept.append(run)
            size += 0 if whole else run.ByteSize()
    if len(kept) < len(message.runs):
        kept.reverse()
        del message.runs[:]
        message.runs.extend(kept)


def _leave_out_large(run: run_pb2.Run, *, whole: bool) -> None:
    if whole and _is_large(run):
        for name in GIVEN:
            run.spec.ClearField(name)
    if not whole and len(run.spec.config) > CONFIG_BYTES:
        run.spec.ClearField("config")


def _is_large(run: run_pb2.Run) -> bool:
    return run.ByteSize() > PAGE_BYTES


def _leave_out_ended(message: thread_pb2.Thread) -> None:
    waiting = [run for run in message.runs if not RunStatus(run.status).terminal]
    del message.runs[:]
    message.runs.extend(waiting)


def _loose(thread: Thread, asked: thread_pb2.ReadThread) -> Iterable[Loose]:
    """What belongs to no checkpoint; in a list only writes, whose checkpoint a live attempt may have logged."""
    state = state_parts(thread.store) if asked.thread_state else ()
    if asked.without_checkpoints or (asked.HasField("page") and thread.active is None):
        return state
    parts = chain(loose_parts(thread.store), state)
    return (one for one in parts if isinstance(one, store_pb2.TaskWrites)) if asked.HasField("page") else parts


def _selected(store: Store, asked: thread_pb2.ReadThread) -> list[Checkpoint]:
    if asked.without_checkpoints:
        return []
    if asked.heads:
        return [store.checkpoints[namespace][head] for namespace, head in store.heads.items()]
    saves = asked.saves if asked.HasField("saves") else None
    found = store.newest_first(
        Namespace(asked.namespace) if asked.HasField("namespace") else None,
        checkpoint_id=CheckpointId(asked.checkpoint_id) if asked.checkpoint_id else None,
        before=CheckpointId(asked.before) if asked.before else None,
        saves=saves,
    )
    if asked.HasField("page"):
        found = of_page(found, asked.page)
    return list(islice(found, asked.newest or asked.page.most or None))


def of_page(newest_first: Iterable[Checkpoint], page: thread_pb2.ListPage) -> Iterator[Checkpoint]:
    """Of checkpoints in the order of a list those after the page's beginning."""
    after = (page.after_id, page.after_namespace) if page.after_id else None
    return (one for one in newest_first if after is None or place(one) < after)


Place = tuple[CheckpointId, Namespace]
"""Where a checkpoint stands in a list, which goes down."""


def place(checkpoint: Checkpoint) -> Place:
    return checkpoint.checkpoint_id, checkpoint.namespace


def read_blobs(store: Store, asked: thread_pb2.ReadBlobs) -> thread_pb2.ReadBlobsReply:
    """The blobs with what they are based on, about PAGE_BYTES of them: ask again with what has come as `have`."""
    have = frozenset(BlobKey(key) for key in asked.have)
    reply, size = thread_pb2.ReadBlobsReply(), 0
    for blob in store.chain((BlobKey(key) for key in asked.keys), have=have):
        if reply.blobs and size + blob.stored_bytes > PAGE_BYTES:
            reply.more = True
            break
        reply.blobs.append(blob_to_message(blob))
        size += blob.stored_bytes
    return reply


OUTLINED_FROM = 8 * 1024
"""Bytes from which a blob that is stored here is worth a mention in outlines."""


def read_outlines(thread: Thread, asked: thread_pb2.ReadBlobs) -> thread_pb2.ReadBlobsReply:
    """The large blobs and those in external storage, without their data; in pages, as read_blobs."""
    have = frozenset(BlobKey(key) for key in asked.have)
    reply = thread_pb2.ReadBlobsReply(incarnation=thread.incarnation)
    size = 0
    for blob in thread.store.blobs.values():
        if blob.key in have or not (blob.is_external or len(blob.data) >= OUTLINED_FROM):
            continue
        if size > PAGE_BYTES:
            reply.more = True
            break
        outline = blob_to_message(replace(blob, data=b"", stored_size=blob.data_bytes))
        reply.blobs.append(outline)
        size += outline.ByteSize()
    if thread.active is not None:
        reply.active.run_id, reply.active.attempt = thread.active.id
        reply.active.applied_seq = thread.active.applied_seq
    if not asked.have:
        reply.stored_bytes = stored_bytes(thread.store)
    return reply


def lay_over(thread: Thread, log: journal_pb2.Log) -> bool:
    """Apply what the log has beyond the state; False where operations between the two are missing: read again."""
    attempt = AttemptId(RunId(log.run_id), log.attempt)
    if thread.active is None or not thread.is_current(attempt):
        return True  # the state is newer: it took that attempt's log in when the attempt ended
    came = arrival(thread.active.applied_seq, Stretch(log.first_seq, tuple(log.entries)))
    if came.gap:
        return False
    thread.apply(operations_from(came.fresh), source_of(log), log.committed_at_ms)
    return True


def read_storage(thread: Thread, asked: thread_pb2.ReadStorage) -> thread_pb2.ReadStorageReply:
    """How much the thread holds, with the log that is given; the history's size is not known here."""
    if asked.log:
        copy = thread_from_message(thread_to_message(thread))  # a query changes nothing
        copy.store.keep = thread.store.keep
        if not lay_over(copy, journal_pb2.Log.FromString(asked.log)):
            return thread_pb2.ReadStorageReply(gap=True)
        thread = copy
    store = thread.store
    writes = [one for tasks in store.tasks.values() for task in tasks.values() for one in task.writes.values()]
    return thread_pb2.ReadStorageReply(
        state_bytes=thread_to_message(thread).ByteSize(),
        unsheddable_bytes=thread.unsheddable_bytes(),
        limit_bytes=thread.settings.state_bytes,
        checkpoints=sum(len(group) for group in store.checkpoints.values()),
        namespaces=len(store.checkpoints),
        blobs=len(store.blobs),
        blob_bytes=sum(blob.stored_bytes for blob in store.blobs.values()),
        external_blobs=sum(blob.is_external for blob in store.blobs.values()),
        external_bytes=sum(blob.stored_size for blob in store.blobs.values() if blob.is_external),
        pending_writes=len(writes),
        pending_write_bytes=sum(one.stored_bytes for one in writes),
        effects=len(store.effects),
        effect_bytes=store.effects.stored_bytes,
        intended_effects=store.effects.intended,
        thread_state_entries=len(store.state.entries),
        thread_state_items=sum(len(entry.items) for entry in store.state),
        thread_state_bytes=state_bytes(store),
        saves=sum(len(group) for namespace, group in store.checkpoints.items() if is_save(namespace)),
        runs=len(thread.runs),
        compactions=thread.compactions,
        left_out=thread.left_out,
    )


def merged_metadata(metadata: bytes, changes: Struct) -> bytes:
    """The metadata with these keys set."""
    merged = Struct.FromString(metadata)
    for key, value in changes.fields.items():
        merged.fields[key].CopyFrom(value)
    return struct_to_bytes(merged)


def named_for(metadata: bytes, spec: run_pb2.RunSpec) -> bytes:
    """The metadata with the agent that a run names: clients of the LangGraph server search threads by it."""
    names = Struct()
    names.fields["graph_id"].string_value = spec.agent
    if spec.assistant_id:
        names.fields["assistant_id"].string_value = spec.assistant_id
    return merged_metadata(metadata, names)


def has_whole_floats(metadata: bytes) -> bool:
    """Whether a member of it is a float without a fraction, which stands in the Struct in a wrapper of its own."""
    return any(whole_float(one) is not None for one in Struct.FromString(metadata).fields.values())


def keywords(metadata: bytes, *, whole_floats: bool = True) -> list[str]:
    """The scalar metadata as terms for Temporal's search; bounded, since each is an indexed term.

    `whole_floats`: with the floats that have no fraction, which threads of before do not have in the index.
    """
    found: list[str] = []
    size = 0
    fields = Struct.FromString(metadata).fields
    for key in sorted(fields, key=lambda key: (key not in _FIRST, key)):
        value = fields[key]
        match value.WhichOneof("kind"):
            case "string_value":
                term = metadata_term(key, value.string_value)
            case "number_value":
                term = metadata_term(key, value.number_value)
            case "bool_value":
                term = metadata_term(key, value.bool_value)
            case _:
                number = whole_float(value)
                if number is None or not whole_floats:
                    continue
                term = metadata_term(key, number)
        if term is None:
            continue
        size += len(term) + 4  # its quotes, a comma and a space
        if size > KEYWORDS_BYTES or len(found) == KEYWORDS:
            break
        found.append(term)
    return found


def metadata_term(key: str, value: str | float | bool) -> str | None:  # noqa: FBT001 - a value of JSON
    """`key=value`, the term by which metadata is searched; None where it is too long to be indexed.

    No two values have the same one. A text that could be taken for a number or a boolean has another `=` before it.
    Temporal's index folds case and cuts off space at the ends, and a query has quotes: `^a` is an A, and what is not
    plain is written as its bytes, `%27`.
    """
    match value:
        case str():
            text = f"={value}" if _AMBIGUOUS.fullmatch(value) else value
        case bool() | int():
            text = json.dumps(value)
        case float():
            text = json.dumps(int(value) if value.is_integer() else value)
    if len(key) + len(text) >= KEYWORD_BYTES:
        return None
    term = f"{_UNSAFE.sub(_written, key).replace('=', '%3d')}={_UNSAFE.sub(_written, text)}"
    return term if len(term) <= KEYWORD_BYTES else None


def _written(unsafe: re.Match[str]) -> str:
    character = unsafe[0]
    if "A" <= character <= "Z":
        return f"^{character.lower()}"
    return "".join(f"%{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
