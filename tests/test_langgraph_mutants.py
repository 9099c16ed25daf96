"""Savers that are wrong in one way each, most of which LangGraph's conformance suite takes for right: our laws do not.

Each mutant says which laws find it out; what is wrong with it is wrong in the store, in how operations are applied, in
how requests are read, or in the saver.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from langgraph.checkpoint.serde.base import SerializerProtocol
from tests import langgraph_contract as laws
from tests.client.hosts import way_to
from tests.client.store_double import StoreDouble
from tests.langgraph_contract import Law, Twin

from agentvisor._langgraph import calls
from agentvisor.core import applying, pruning
from agentvisor.core.ids import ROOT, CheckpointId, Namespace
from agentvisor.core.records import (
    Checkpoint,
    CheckpointKey,
    CheckpointTuple,
    DeleteForRuns,
    Operation,
    Prune,
    TaskWrites,
)
from agentvisor.core.store import Store
from agentvisor.langgraph import AgentVisorCheckpointer

# --- the store -----------------------------------------------------------------------------------------------------


class LastWriteCounts(Store):
    """A task's regular writes are overwritten when it writes again."""

    def put_writes(self, writes: TaskWrites) -> None:
        super().put_writes(writes)
        self.tasks[writes.key][writes.task_id].writes.update({one.idx: one for one in writes.writes})


class FirstControlWriteCounts(Store):
    """An interrupt or an answer is never replaced."""

    def put_writes(self, writes: TaskWrites) -> None:
        there = self.tasks.get(writes.key, {}).get(writes.task_id)
        before = dict(there.writes) if there else {}
        super().put_writes(writes)
        self.tasks[writes.key][writes.task_id].writes.update(before)


class OrderOfTasksAlone(Store):
    """Pending writes come by task, whatever its path."""

    def pending(self, key: CheckpointKey) -> tuple[TaskWrites, ...]:
        return tuple(sorted(super().pending(key), key=lambda one: one.task_id))


class LatestIsTheLastPut(Store):
    """The latest checkpoint is the one that came last."""

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        super().put_checkpoint(checkpoint)
        self.set_head(checkpoint.namespace, checkpoint)


class WritesByIdAlone(Store):
    """Writes are filed under a checkpoint's id, in whatever namespace it is."""

    def put_writes(self, writes: TaskWrites) -> None:
        super().put_writes(replace(writes, namespace=ROOT))

    def pending(self, key: CheckpointKey) -> tuple[TaskWrites, ...]:
        return super().pending(CheckpointKey(ROOT, key.checkpoint_id))


class OneHead(Store):
    """A namespace's latest is the thread's latest."""

    def get(self, namespace: Namespace, checkpoint_id: CheckpointId | None = None) -> CheckpointTuple | None:
        if checkpoint_id is None and self.heads:
            namespace = max(self.heads, key=lambda one: self.heads[one])
        return super().get(namespace, checkpoint_id)


class BeforeInItsNamespaceAlone(Store):
    """`before` must be a checkpoint of the listed namespace; else it counts for nothing."""

    def newest_first(self, namespace: Namespace | None = None, **asked: Any) -> Iterator[Checkpoint]:
        if namespace is not None and asked["before"] not in self.checkpoints.get(namespace, {}):
            asked["before"] = None
        return super().newest_first(namespace, **asked)


class BeforeIsIncluded(Store):
    """`before` is not strict."""

    def newest_first(self, namespace: Namespace | None = None, **asked: Any) -> Iterator[Checkpoint]:
        before = asked["before"]
        return super().newest_first(namespace, **asked | {"before": before and CheckpointId(before + " ")})


class RootIsAllNamespaces(Store):
    """The root's empty name is taken for none."""

    def newest_first(self, namespace: Namespace | None = None, **asked: Any) -> Iterator[Checkpoint]:
        return super().newest_first(namespace or None, **asked)


class KeepsTheFirstPut(Store):
    """Putting a checkpoint again changes nothing of it."""

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        if self.get(checkpoint.namespace, checkpoint.checkpoint_id) is None:
            super().put_checkpoint(checkpoint)


class PutDropsWrites(Store):
    """Putting a checkpoint begins it anew: writes that came before are gone."""

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        super().put_checkpoint(checkpoint)
        self.forget(checkpoint.key)


class NoBones(Store):
    """Pruning leaves nothing of a checkpoint."""

    def add_bone(self, bone: Any) -> None:
        self.forget(bone.key)


# --- how operations are applied ------------------------------------------------------------------------------------


def no_orphans(store: Store, operation: Operation) -> None:
    """Writes need their checkpoint, as by a foreign key."""
    if not isinstance(operation, TaskWrites) or operation.checkpoint_id in store.checkpoints.get(
        operation.namespace, {}
    ):
        applying.apply(store, operation)


def no_late_writes(store: Store, operation: Operation) -> None:
    """Writes go to the latest checkpoint, whichever they name."""
    if isinstance(operation, TaskWrites):
        operation = replace(operation, checkpoint_id=store.heads.get(operation.namespace, operation.checkpoint_id))
    applying.apply(store, operation)


def deletes_from_the_root_alone(store: Store, operation: Operation) -> None:
    """What a run made in subgraphs stays."""
    if isinstance(operation, DeleteForRuns):
        doomed = [one.checkpoint_id for one in store.checkpoints[ROOT].values() if one.run_id in operation.run_ids]
        pruning.drop_checkpoints(store, ROOT, doomed)
    else:
        applying.apply(store, operation)


def prunes_to_one_of_all(store: Store, operation: Operation) -> None:
    """One checkpoint stays of the thread, and not one of every namespace."""
    applying.apply(store, operation)
    if isinstance(operation, Prune):
        latest = max(store.heads, key=lambda one: store.heads[one])
        for namespace in [one for one in store.checkpoints if one != latest]:
            pruning.drop_namespace(store, namespace)


def prunes_writes_too(store: Store, operation: Operation) -> None:
    """Pruning takes the writes of what it keeps."""
    applying.apply(store, operation)
    if isinstance(operation, Prune):
        for key in list(store.tasks):
            store.forget(key)


# --- the saver -----------------------------------------------------------------------------------------------------


class PlainJson(SerializerProtocol):
    """Values are JSON: their types are lost."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "json", json.dumps(obj, default=str).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return json.loads(data[1])


class NoTaskPath(AgentVisorCheckpointer):
    """The asynchronous twin loses the path."""

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        await super().aput_writes(config, writes, task_id)


class NoLimit(AgentVisorCheckpointer):
    """A limit of 0 is taken for none."""

    def list(self, config: Any, **asked: Any) -> Iterator[Any]:
        return super().list(config, **asked | {"limit": asked.get("limit") or None})


class AnyOfTheFilter(AgentVisorCheckpointer):
    """A filter looks at its first key."""

    def list(self, config: Any, **asked: Any) -> Iterator[Any]:
        wanted = asked.get("filter")
        return super().list(config, **asked | {"filter": dict(list(wanted.items())[:1]) if wanted else None})


class KnownKeysAlone(AgentVisorCheckpointer):
    """A filter knows LangGraph's own keys and passes over the user's."""

    def list(self, config: Any, **asked: Any) -> Iterator[Any]:
        wanted = {key: one for key, one in (asked.get("filter") or {}).items() if key in {"source", "step", "parents"}}
        return super().list(config, **asked | {"filter": wanted or None})


class NoParents(AgentVisorCheckpointer):
    """Every checkpoint is a root."""

    def put(self, config: Any, *what: Any) -> Any:
        place = {key: one for key, one in config["configurable"].items() if key != "checkpoint_id"}
        return super().put({**config, "configurable": place}, *what)


class GoneChannelsComeBack(AgentVisorCheckpointer):
    """A checkpoint is read with the values of its parent below it."""

    def get_tuple(self, config: Any) -> Any:
        found = super().get_tuple(config)
        if found is not None and found.parent_config is not None:
            below = super().get_tuple(found.parent_config)
            assert below is not None
            found.checkpoint["channel_values"] = below.checkpoint["channel_values"] | found.checkpoint["channel_values"]
        return found


class RaisesOnMissing(AgentVisorCheckpointer):
    """A checkpoint that is not there is an error."""

    def get_tuple(self, config: Any) -> Any:
        found = super().get_tuple(config)
        if found is None:
            raise KeyError(config)
        return found


class CopiesTheLatestAlone(AgentVisorCheckpointer):
    """A copy has the newest checkpoints of its source."""

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        super().prune([source_thread_id])
        super().copy_thread(source_thread_id, target_thread_id)


# -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """What is wrong, and the laws that find it out."""

    found_by: Sequence[Law]
    store: type[Store] = Store
    applying: Callable[[Store, Operation], None] = applying.apply
    saver: type[AgentVisorCheckpointer] = AgentVisorCheckpointer
    serde: SerializerProtocol | None = None
    twin: bool = False
    no_slots: bool = False
    """Control writes have no indices of their own."""


MUTANTS = {
    "needs the checkpoint first": Mutant([laws.writes_may_come_before_their_checkpoint], applying=no_orphans),
    "ignores task paths": Mutant([laws.writes_come_in_the_order_of_path_task_and_index], store=OrderOfTasksAlone),
    "last regular write counts": Mutant([laws.of_regular_writes_the_first_counts], store=LastWriteCounts),
    "first control write counts": Mutant([laws.of_control_writes_the_last_counts], store=FirstControlWriteCounts),
    "no slots for control writes": Mutant([laws.control_writes_have_slots_of_their_own], no_slots=True),
    "latest is the last put": Mutant(
        [laws.the_latest_is_the_greatest_id_in_whatever_order_they_come], store=LatestIsTheLastPut
    ),
    "plain JSON": Mutant([laws.values_come_back_as_the_types_that_they_were], serde=PlainJson()),
    "late writes go to the latest": Mutant(
        [laws.late_writes_are_filed_under_the_checkpoint_that_they_name], applying=no_late_writes
    ),
    "writes by id alone": Mutant([laws.namespaces_have_writes_and_heads_of_their_own], store=WritesByIdAlone),
    "one head": Mutant([laws.namespaces_have_writes_and_heads_of_their_own, laws.a_missing_checkpoint_is_none],
                       store=OneHead),
    "before within a namespace": Mutant(
        [laws.before_compares_ids_across_namespaces_and_is_strict], store=BeforeInItsNamespaceAlone
    ),
    "before is included": Mutant([laws.before_compares_ids_across_namespaces_and_is_strict], store=BeforeIsIncluded),
    "the root is all": Mutant([laws.the_root_is_a_namespace_and_none_is_all], store=RootIsAllNamespaces),
    "limit 0 is none": Mutant([laws.a_limit_of_nothing_lists_nothing], saver=NoLimit),
    "any key of the filter": Mutant([laws.a_filter_wants_all_of_its_keys_whatever_they_are], saver=AnyOfTheFilter),
    "filters known keys": Mutant([laws.a_filter_wants_all_of_its_keys_whatever_they_are], saver=KnownKeysAlone),
    "put is not repeated": Mutant([laws.putting_a_checkpoint_again_replaces_it], store=KeepsTheFirstPut),
    "put drops writes": Mutant(
        [laws.putting_a_checkpoint_again_replaces_it, laws.writes_may_come_before_their_checkpoint],
        store=PutDropsWrites,
    ),
    "no parents": Mutant([laws.parents_are_those_that_were_named], saver=NoParents),
    "channels come back": Mutant([laws.a_channel_that_has_gone_does_not_come_back], saver=GoneChannelsComeBack),
    "missing is an error": Mutant([laws.a_missing_checkpoint_is_none], saver=RaisesOnMissing),
    "twin without paths": Mutant(
        [laws.writes_come_in_the_order_of_path_task_and_index], saver=NoTaskPath, twin=True
    ),
    "rollback of the root alone": Mutant(
        [laws.what_runs_have_made_goes_from_every_namespace_with_its_writes], applying=deletes_from_the_root_alone
    ),
    "prunes to one": Mutant([laws.pruning_keeps_the_latest_of_every_namespace], applying=prunes_to_one_of_all),
    "prunes writes": Mutant([laws.pruning_keeps_the_latest_of_every_namespace], applying=prunes_writes_too),
    "pruning breaks delta channels": Mutant(
        [laws.a_delta_channel_outlives_the_checkpoints_that_it_is_made_of], store=NoBones
    ),
    "copies the latest": Mutant([laws.a_copy_is_whole_and_independent], saver=CopiesTheLatestAlone),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS.keys())
def test_a_mutant_is_found_out(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    if mutant.no_slots:
        monkeypatch.setattr(calls, "WRITES_IDX_MAP", {})
    double = StoreDouble(store=mutant.store, applying=mutant.applying)
    with way_to(double, "socketpair") as transport:
        saver = mutant.saver(transport=transport, serde=mutant.serde)
        for law in mutant.found_by:
            with pytest.raises((AssertionError, KeyError)):
                law(Twin(saver) if mutant.twin else saver, law.__name__)


def test_every_law_finds_out_a_mutant_or_is_about_threads() -> None:
    found_by = {law for mutant in MUTANTS.values() for law in mutant.found_by}
    assert set(laws.LAWS) - found_by == {laws.six_threads_at_once_lose_nothing}
