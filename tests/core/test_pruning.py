"""A pruned store beside a model that keeps everything: whatever is still there reads the same, and nothing leaks."""

import asyncio
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.store_histories import histories

from agentvisor.core.applying import apply
from agentvisor.core.delta import histories as delta_histories
from agentvisor.core.ids import ROOT, BlobKey, CheckpointId, Namespace
from agentvisor.core.records import (
    Blob,
    Checkpoint,
    CheckpointKey,
    Encoding,
    Operation,
    PutBlobs,
    TaskWrites,
    Write,
)
from agentvisor.core.store import Store
from agentvisor.host.blob_shelf import BlobShelf
from agentvisor.protocol.stores import store_from_message, store_to_message

pytestmark = pytest.mark.thorough

EXAMPLES = settings(max_examples=300, deadline=None)


# --- what a host does with what an SDK sends -----------------------------------------------------------------------


def admitted(store: Store, operation: Operation, sent: list[Blob]) -> list[Operation]:
    """What the host journals: blobs that are new, whole where their base is gone, right before their checkpoint."""
    if isinstance(operation, PutBlobs):
        if all(blob.key.startswith(b"lost") for blob in operation.blobs):
            return [operation]
        sent[:] = operation.blobs
        return []
    if not isinstance(operation, Checkpoint):
        return [operation]
    fresh: dict[BlobKey, Blob] = {}
    for key in dict.fromkeys(key for key in operation.channels.values() if key is not None):
        if store.has_blob(key):
            continue
        blob = next((one for one in sent if one.key == key), None)
        if blob is None or (blob.base is not None and not store.has_blob(blob.base)):
            blob = Blob(key, "bytes", Encoding.RAW, b"value of " + key, None, 20, 0)
        fresh[key] = blob
    sent.clear()
    return [*([PutBlobs(tuple(fresh.values()))] if fresh else []), operation]


def applied(store: Store, operations: Iterable[Operation]) -> None:
    sent: list[Blob] = []
    for operation in operations:
        for one in admitted(store, operation, sent):
            apply(store, one)


# --- the model -----------------------------------------------------------------------------------------------------


@dataclass
class Everything:
    """Forgets namespaces that are stale, and nothing else; every rule as plainly as it can be said."""

    keep: int
    put: dict[Namespace, dict[CheckpointId, Checkpoint]] = field(default_factory=dict)
    tasks: dict[CheckpointKey, dict[tuple[str, str], dict[int, Write]]] = field(default_factory=dict)

    def apply(self, operation: Operation) -> None:
        if isinstance(operation, Checkpoint):
            group = self.put.setdefault(operation.namespace, {})
            is_new = operation.checkpoint_id not in group
            group[operation.checkpoint_id] = operation
            if operation.namespace == ROOT and is_new:
                self.reclaim()
        elif isinstance(operation, TaskWrites):
            known = self.tasks.setdefault(operation.key, {})
            place = next((one for one in known if one[1] == operation.task_id), None)
            slots = known.setdefault(place or (operation.task_path, operation.task_id), {})
            for write in operation.writes:
                if write.idx < 0 or write.idx not in slots:
                    slots[write.idx] = write

    def reclaim(self) -> None:
        kept = self.kept(ROOT)
        if self.keep <= 0 or len(self.put[ROOT]) <= self.keep:
            return
        for namespace, group in list(self.put.items()):
            root_id = group[max(group)].root_id
            if ":" in namespace and root_id is not None and root_id < min(kept):
                del self.put[namespace]
                for key in [key for key in self.tasks if key.namespace == namespace]:
                    del self.tasks[key]
        for key in [key for key in self.tasks if ":" in key.namespace and key.namespace not in self.put]:
            if key.checkpoint_id < min(kept):  # late, for a namespace that is gone
                del self.tasks[key]

    def kept(self, namespace: Namespace) -> list[CheckpointId]:
        ids = sorted(self.put.get(namespace, {}))
        return ids[-self.keep :] if self.keep > 0 else ids

    def pending(self, key: CheckpointKey) -> list[tuple[str, str, list[Write]]]:
        return [
            (path, task, [slots[idx] for idx in sorted(slots)])
            for (path, task), slots in sorted(self.tasks.get(key, {}).items())
        ]

    def delta(self, one: Checkpoint, channel: str) -> tuple[BlobKey | None, list[tuple[str, str, list[bytes]]]]:
        """LangGraph's contract: along the parents, back to one that holds a value; that one's own writes count too."""
        group, found = self.put[one.namespace], list[tuple[str, str, list[bytes]]]()
        at = one.parent_id
        while at is not None and at in group:
            key = CheckpointKey(one.namespace, at)
            found[:0] = [
                (at, task, values)
                for _, task, writes in self.pending(key)
                if (values := [write.data for write in writes if write.channel == channel and write.idx >= 0])
            ]
            if (seed := group[at].channels.get(channel)) is not None:
                return seed, found
            at = group[at].parent_id
        return None, found


# --- the properties ------------------------------------------------------------------------------------------------


def check_reads(store: Store, model: Everything) -> None:
    assert set(store.checkpoints) == {one for one in model.put if model.kept(one)}
    for namespace in store.checkpoints:
        assert sorted(store.checkpoints[namespace]) == model.kept(namespace)
        head = store.get(namespace)
        assert head is not None
        assert head.checkpoint == model.put[namespace][max(model.put[namespace])]
        for one in store.checkpoints[namespace].values():
            pending = [(task.task_path, task.task_id, list(task.writes)) for task in store.pending(one.key)]
            assert pending == model.pending(one.key)
            for channel in one.delta_channels:
                if channel in one.channels and one.channels[channel] is None:
                    found = delta_histories(store, namespace, one.checkpoint_id, (channel,))[channel]
                    writes = [
                        (task.checkpoint_id, task.task_id, [write.data for write in task.writes])
                        for task in found.writes
                    ]
                    assert (found.seed, writes) == model.delta(one, channel)


def check_nothing_leaks(store: Store) -> None:
    counts: dict[BlobKey, int] = {}
    bones = [bone for group in store.bones.values() for bone in group.values()]
    for channels in (one.channels for one in (*store.all_checkpoints(), *bones)):
        for key in channels.values():
            if key is not None:
                counts[key] = counts.get(key, 0) + 1
    for blob in store.blobs.values():
        if blob.base is not None:
            counts[blob.base] = counts.get(blob.base, 0) + 1
    assert store.references == counts
    assert all(key in store.blobs for key in counts), "a value that is needed is gone"
    assert all(key in counts or key.startswith(b"lost") for key in store.blobs), "a value that nothing needs is here"
    assert store.heads == {namespace: max(group) for namespace, group in store.checkpoints.items()}
    heads = [store.checkpoints[namespace][head] for namespace, head in store.heads.items()]
    assert store.roots == {head.namespace: head.root_id for head in heads if head.root_id}
    assert store.under == {
        root_id: {head.namespace for head in heads if head.root_id == root_id} for root_id in store.roots.values()
    }
    here = {one.key for one in (*store.all_checkpoints(), *bones)}
    orphans: dict[Namespace, set[CheckpointId]] = {}
    for key in {*store.tasks, *store.projections} - here:
        orphans.setdefault(key.namespace, set()).add(key.checkpoint_id)
    assert store.orphans == orphans
    assert all(group for group in store.checkpoints.values())
    assert all(group for group in store.bones.values())
    assert all(tasks and all(task.writes for task in tasks.values()) for tasks in store.tasks.values())


@EXAMPLES
@given(case=st.integers(1, 5).flatmap(lambda keep: st.tuples(st.just(keep), histories(keep=keep, deletes=False))))
def test_pruned_at_every_prefix_what_is_kept_reads_as_if_all_were_kept(case: tuple[int, list[Operation]]) -> None:
    keep, operations = case
    store, model, sent = Store(keep=keep), Everything(keep), list[Blob]()
    for operation in operations:
        for one in admitted(store, operation, sent):
            apply(store, one)
        model.apply(operation)
        check_reads(store, model)
        check_nothing_leaks(store)


@pytest.mark.parametrize("keep", [0, -1])
@EXAMPLES
@given(operations=histories(deletes=False))
def test_without_a_limit_everything_is_kept_and_nothing_reclaimed(keep: int, operations: list[Operation]) -> None:
    store, model = Store(keep=keep), Everything(keep)
    applied(store, operations)
    for operation in operations:
        model.apply(operation)
    check_reads(store, model)
    put = {one.key for one in operations if isinstance(one, Checkpoint)}
    assert {one.key for one in store.all_checkpoints()} == put


@EXAMPLES
@given(operations=histories(), keep=st.integers(0, 4))
def test_nothing_leaks_whatever_is_deleted(operations: list[Operation], keep: int) -> None:
    store, sent = Store(keep=keep), list[Blob]()
    for operation in operations:
        for one in admitted(store, operation, sent):
            apply(store, one)
            check_nothing_leaks(store) if not isinstance(one, PutBlobs) else None


@EXAMPLES
@given(operations=histories(), keep=st.integers(0, 4))
def test_an_operation_that_is_applied_twice_counts_once(operations: list[Operation], keep: int) -> None:
    store, sent = Store(keep=keep), list[Blob]()
    for operation in operations:
        for one in admitted(store, operation, sent):
            apply(store, one)
            if not isinstance(one, PutBlobs):
                once = deepcopy(store)
                apply(store, one)
                assert store == once


@EXAMPLES
@given(operations=histories(), keep=st.integers(1, 4))
def test_a_store_that_went_through_its_message_is_the_same_and_goes_on_the_same(
    operations: list[Operation], keep: int
) -> None:
    store, carried, sent = Store(keep=keep), Store(keep=keep), list[Blob]()
    for operation in operations:
        for one in admitted(store, operation, sent):
            apply(store, one)
            apply(carried, one)
        carried = store_from_message(store_to_message(carried, carried.all_checkpoints(), blobs=True))
        carried.keep = keep
        assert carried.projections == store.projections
        assert carried.checkpoints == store.checkpoints
        assert carried.bones == store.bones
        assert carried.tasks == store.tasks
        assert carried.blobs == store.blobs
        assert carried.references == store.references


@settings(max_examples=100, deadline=None)
@given(operations=histories(), keep=st.integers(1, 3), data=st.data())
def test_what_a_host_holds_to_be_there_is_there_in_the_workflow(
    operations: list[Operation], keep: int, data: st.DataObject
) -> None:
    """The host reads records without values, loads some of those late from a workflow that lags behind it."""
    workflow = Store(keep=keep)
    begins = data.draw(st.integers(0, len(operations)))
    applied(workflow, operations[:begins])
    workflow.drop_unreferenced_blobs()
    host = store_from_message(store_to_message(workflow, workflow.all_checkpoints(), blobs=False))
    host.keep = keep
    lagging, log, sent = workflow, list[Operation](), list[Blob]()

    async def load(keys: list[BlobKey]) -> list[Blob]:
        return lagging.chain(keys)

    shelf = BlobShelf(host, load, max_value_bytes=1000)
    ever = [key for one in operations if isinstance(one, Checkpoint) for key in one.channels.values() if key]
    for operation in operations[begins:]:
        for one in admitted(host, operation, sent):
            if isinstance(one, PutBlobs):  # a host checks a difference by applying it to its base
                asyncio.run(shelf.stored([blob.base for blob in one.blobs if blob.base is not None]))
            apply(host, one)
            log.append(one)
        if ever and data.draw(st.booleans()):
            asyncio.run(shelf.stored(data.draw(st.lists(st.sampled_from(ever), max_size=3))))
        if data.draw(st.booleans()):  # a fold
            for one in log:
                apply(lagging, one)
            log.clear()
        current = deepcopy(lagging)
        for one in log:
            apply(current, one)
        assert [key for key in ever if host.has_blob(key) and key not in current.blobs] == []
        assert {one.key for one in host.all_checkpoints()} == {one.key for one in current.all_checkpoints()}
        assert host.bones == current.bones
        check_nothing_leaks(current)
