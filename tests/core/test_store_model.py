"""The pure store beside LangGraph's InMemorySaver: a state machine does everything to both, through a thin adapter."""

from collections.abc import Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from langgraph.checkpoint.base import WRITES_IDX_MAP, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agentvisor.core.applying import apply
from agentvisor.core.delta import histories
from agentvisor.core.ids import BlobKey, CheckpointId, Namespace
from agentvisor.core.records import Blob, Checkpoint, CheckpointTuple, Encoding, PutBlobs, TaskWrites, Write
from agentvisor.core.store import Store
from agentvisor.protocol.blobs import blob_key

NAMESPACES = ["", "node:1", "keeps", "node:1|inner:2"]
CHANNELS = ["a", "b", "log"]
SPECIAL = ["__error__", "__interrupt__", "__resume__", "__scheduled__"]
SERDE = JsonPlusSerializer()


class CoreSaver:
    """The operations of a saver as core's operations; values are serialised, versions say what changed."""

    def __init__(self) -> None:
        self.store = Store()

    def put(self, config: Any, checkpoint: Any) -> None:
        blobs, channels = list[Blob](), dict[str, BlobKey | None]()
        for channel in checkpoint["channel_versions"]:
            channels[channel] = None
            if channel in checkpoint["channel_values"]:
                kind, data = SERDE.dumps_typed(checkpoint["channel_values"][channel])
                channels[channel] = key = BlobKey(blob_key(kind, data))
                blobs.append(Blob(key, kind, Encoding.RAW, data, None, len(data), 0))
        apply(self.store, PutBlobs(tuple(blobs)))
        where = config["configurable"]
        one = Checkpoint(
            Namespace(where["checkpoint_ns"]),
            CheckpointId(checkpoint["id"]),
            CheckpointId(where["checkpoint_id"]) if where.get("checkpoint_id") else None,
            "msgpack",
            b"",
            b"",
            channels,
            "",
        )
        apply(self.store, one)

    def put_writes(self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str) -> None:
        where = config["configurable"]
        those = tuple(
            Write(WRITES_IDX_MAP.get(channel, idx), channel, *SERDE.dumps_typed(value), 0)
            for idx, (channel, value) in enumerate(writes)
        )
        key = (Namespace(where["checkpoint_ns"]), CheckpointId(where["checkpoint_id"]))
        apply(self.store, TaskWrites(*key, task_id, task_path, those))

    def shown(self, found: CheckpointTuple | None) -> Any:
        if found is None:
            return None
        one = found.checkpoint
        values = {
            channel: SERDE.loads_typed((self.store.blobs[key].type, self.store.blobs[key].data))
            for channel, key in one.channels.items()
            if key is not None
        }
        pending = [
            (task.task_id, write.channel, SERDE.loads_typed((write.type, write.data)))
            for task in found.pending
            for write in task.writes
        ]
        return one.namespace, one.checkpoint_id, one.parent_id, values, pending


def shown(found: Any) -> Any:
    """What of a saver's tuple is compared."""
    if found is None:
        return None
    parent = found.parent_config["configurable"]["checkpoint_id"] if found.parent_config else None
    where = found.config["configurable"]
    values = dict(found.checkpoint["channel_values"])
    return where["checkpoint_ns"], where["checkpoint_id"], parent, values, list(found.pending_writes or ())


def place(namespace: str, checkpoint_id: str = "") -> Any:
    where = {"thread_id": "t", "checkpoint_ns": namespace}
    return {"configurable": where | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})}


class BothStores(RuleBasedStateMachine):
    """Does everything to both."""

    checkpoints = Bundle("checkpoints")

    def __init__(self) -> None:
        super().__init__()
        self.ours, self.model = CoreSaver(), InMemorySaver()
        self.ids = 0
        self.known: list[tuple[str, str]] = []

    def next_id(self) -> str:
        self.ids += 1
        return f"{self.ids:05}"

    @rule(target=checkpoints, namespace=st.sampled_from(NAMESPACES), changed=st.sets(st.sampled_from(CHANNELS)))
    def begin(self, namespace: str, changed: set[str]) -> Any:
        return self.put((place(namespace), self.next_id()), {}, {}, changed)

    @rule(target=checkpoints, parent=checkpoints, changed=st.sets(st.sampled_from(CHANNELS)), data=st.data())
    def go_on(self, parent: Any, changed: set[str], data: st.DataObject) -> Any:
        found = self.model.get_tuple(parent)
        assert found is not None
        values, versions = found.checkpoint["channel_values"], found.checkpoint["channel_versions"]
        cleared = frozenset(one for one in sorted(changed) if data.draw(st.booleans()))
        return self.put((parent, self.next_id()), values, versions, changed, cleared)

    @rule(target=checkpoints, namespace=st.sampled_from(NAMESPACES))
    def come_late(self, namespace: str) -> Any:
        """With an id smaller than those that are there: the latest stays the latest."""
        return self.put((place(namespace), f"00000-{self.next_id()}"), {}, {}, set(CHANNELS))

    @rule(parent=checkpoints)
    def put_again(self, parent: Any) -> None:
        found = self.model.get_tuple(parent)
        assert found is not None
        before = place(parent["configurable"]["checkpoint_ns"])
        if found.parent_config:
            before = found.parent_config
        versions = found.checkpoint["channel_versions"]
        self.model.put(before, found.checkpoint, found.metadata, versions)
        self.ours.put(before, found.checkpoint)

    @rule(
        parent=checkpoints,
        task=st.sampled_from("abc"),
        channels=st.lists(st.sampled_from([*CHANNELS, *SPECIAL]), min_size=1, max_size=3),
        value=st.integers(),
    )
    def write(self, parent: Any, task: str, channels: list[str], value: int) -> None:
        writes = [(channel, str(value)) for channel in channels]
        for saver in (self.ours, self.model):
            saver.put_writes(parent, writes, task, f"path-{task}")

    @rule(namespace=st.sampled_from(NAMESPACES), value=st.integers())
    def write_before_the_checkpoint_comes(self, namespace: str, value: int) -> None:
        coming = f"{self.ids + 1:05}"
        for saver in (self.ours, self.model):
            saver.put_writes(place(namespace, coming), [("a", str(value))], "early", "path")

    def put(
        self,
        where: tuple[Any, str],
        values: Any,
        versions: Any,
        changed: set[str],
        cleared: frozenset[str] = frozenset(),
    ) -> Any:
        parent, new_id = where
        values, versions = {**values}, {**versions}
        for channel in sorted(changed):
            versions[channel] = self.model.get_next_version(versions.get(channel), None)
            values[channel] = [*values.get(channel, []), new_id]
            if channel in cleared:
                del values[channel]
        one = empty_checkpoint() | {"id": new_id, "channel_values": values, "channel_versions": versions}
        self.ours.put(parent, one)
        config = self.model.put(parent, one, {}, {channel: versions[channel] for channel in changed})
        self.known.append((config["configurable"]["checkpoint_ns"], new_id))
        return config

    @invariant()
    def every_read_is_the_same(self) -> None:
        store = self.ours.store
        for namespace, checkpoint_id in self.known[-4:]:
            found = store.get(Namespace(namespace), CheckpointId(checkpoint_id))
            assert self.ours.shown(found) == shown(self.model.get_tuple(place(namespace, checkpoint_id)))
        for namespace in NAMESPACES:
            assert self.ours.shown(store.get(Namespace(namespace))) == shown(self.model.get_tuple(place(namespace)))
            ours = [one.checkpoint_id for one in store.newest_first(Namespace(namespace))]
            theirs = [one.config["configurable"]["checkpoint_id"] for one in self.model.list(place(namespace))]
            assert ours == theirs

    @invariant()
    def before_compares_ids_across_namespaces(self) -> None:
        for namespace, checkpoint_id in self.known[-2:]:
            for other in NAMESPACES:
                before = place(namespace, checkpoint_id)
                ours = [
                    one.checkpoint_id
                    for one in self.ours.store.newest_first(Namespace(other), before=CheckpointId(checkpoint_id))
                ]
                theirs = [
                    one.config["configurable"]["checkpoint_id"] for one in self.model.list(place(other), before=before)
                ]
                assert ours == theirs

    @invariant()
    def histories_of_delta_channels_are_the_same(self) -> None:
        for namespace, checkpoint_id in self.known[-2:]:
            config = place(namespace, checkpoint_id)
            theirs = self.model.get_delta_channel_history(config=config, channels=CHANNELS)
            found = histories(self.ours.store, Namespace(namespace), CheckpointId(checkpoint_id), tuple(CHANNELS))
            for channel in CHANNELS:
                ours = [
                    (task.task_id, write.channel, SERDE.loads_typed((write.type, write.data)))
                    for task in found[channel].writes
                    for write in task.writes
                ]
                assert ours == [tuple(one) for one in theirs[channel]["writes"]]
                seed = found[channel].seed
                assert (seed is not None) == ("seed" in theirs[channel])


TestBothStores = BothStores.TestCase
TestBothStores.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
