"""What delta channels leave behind: bounded, trimmed, and stopped where a channel began."""

from tests.core.test_shedding import checkpoint, delta, writes

from agentvisor.core.applying import apply
from agentvisor.core.delta import histories
from agentvisor.core.ids import ROOT, BlobKey, CheckpointId
from agentvisor.core.records import Blob, Checkpoint, CheckpointKey, DeleteForRuns, Encoding, Operation, Prune, PutBlobs
from agentvisor.core.store import Store


def step(number: int, channels: dict[str, BlobKey | None], *, run_id: str = "") -> list[Operation]:
    """A checkpoint on the line, with both channels listed as LangGraph lists every delta channel of a graph."""
    blobs = tuple(Blob(key, "b", Encoding.RAW, b"v", None, 1, 0) for key in channels.values() if key is not None)
    one = Checkpoint(
        ROOT,
        CheckpointId(f"{number:05}"),
        CheckpointId(f"{number - 1:05}") if number else None,
        "msgpack",
        b"r",
        b"",
        channels,
        "ts",
        run_id=run_id,
        delta_channels=("d", "e"),
    )
    return [PutBlobs(blobs), one] if blobs else [one]


def store_of(keep: int, *operations: Operation) -> Store:
    store = Store(keep=keep)
    for operation in operations:
        apply(store, operation)
    return store


def log(store: Store, channel: str = "d") -> list[str]:
    found = histories(store, ROOT, None, (channel,))[channel]
    return [write.data.decode() for task in found.writes for write in task.writes]


def test_a_channel_that_was_never_written_leaves_nothing_behind() -> None:
    store = Store(keep=2)
    for number in range(200):
        for operation in step(number, {}):
            apply(store, operation)
    assert not store.bones


def test_a_channel_that_is_seldom_written_leaves_a_bone_for_each_write_and_not_for_each_super_step() -> None:
    store = Store(keep=2)
    for number in range(500):
        for operation in step(number, {"d": None} if number else {}):
            apply(store, operation)
        if number % 50 == 0:
            apply(store, writes(number, "t", delta(str(number))))
    assert log(store) == [str(number) for number in range(0, 500, 50)]
    assert len(store.bones[ROOT]) <= 10 + 1
    assert len(store.tasks) <= 10 + 1


def test_a_bone_gives_up_what_only_another_channel_needed() -> None:
    # "d" is seldom written and keeps the bone; "e" is often snapshotted, and must not be kept with it.
    store = Store(keep=1)
    for operation in (*step(0, {}), writes(0, "t", delta("d0")), *step(1, {"d": None, "e": BlobKey(b"large")})):
        apply(store, operation)
    apply(store, writes(1, "t", delta("d1")))
    for operation in step(2, {"d": None, "e": None}):
        apply(store, operation)
    assert BlobKey(b"large") in store.blobs
    for operation in (*step(3, {"d": None, "e": BlobKey(b"later")}), *step(4, {"d": None, "e": None})):
        apply(store, operation)
    assert BlobKey(b"large") not in store.blobs
    assert log(store) == ["d0", "d1"]


def test_a_snapshot_makes_the_bones_before_it_superfluous() -> None:
    store = Store(keep=1)
    for number in range(6):
        for operation in step(number, {"d": BlobKey(b"snap") if number == 4 else None} if number else {}):
            apply(store, operation)
        apply(store, writes(number, "t", delta(str(number))))
    assert log(store) == ["4"]
    assert list(store.bones[ROOT]) == ["00004"]
    assert histories(store, ROOT, None, ("d",))["d"].seed == BlobKey(b"snap")


def test_prune_and_rollback_keep_what_the_rest_is_made_of() -> None:
    operations = [
        one
        for number in range(6)
        for one in (
            *step(number, {"d": None} if number else {}, run_id="good" if number < 4 else "bad"),
            writes(number, "t", delta(str(number))),
        )
    ]
    store = store_of(0, *operations, DeleteForRuns(frozenset({"bad"})))
    assert store.heads[ROOT] == "00003"
    assert log(store) == ["0", "1", "2"]
    apply(store, Prune(keep_latest=True))
    assert list(store.checkpoints[ROOT]) == ["00003"]
    assert log(store) == ["0", "1", "2"]


def test_regular_and_control_writes_of_a_bone_go() -> None:
    store = Store(keep=1)
    task = writes(1, "t", delta("kept"))
    for operation in (*checkpoint(1, None, snapshot=True), task, writes(1, "u", delta("too")), *checkpoint(2, 1)):
        apply(store, operation)
    key = CheckpointKey(ROOT, CheckpointId("00001"))
    assert {task: sorted(one.writes) for task, one in store.tasks[key].items()} == {"t": [0], "u": [0]}
