"""What of a task's writes is kept, dropped, or refused at the door of a thread (S5, S6)."""

import os
from dataclasses import replace

import pytest

from agentvisor.core.applying import apply
from agentvisor.core.errors import StateTooLarge, ValueTooLarge
from agentvisor.core.ids import ROOT, BlobKey, CheckpointId, Namespace, ThreadId
from agentvisor.core.records import Blob, Checkpoint, Encoding, PutBlobs, TaskWrites, Write
from agentvisor.core.thread import Thread
from agentvisor.host.door import Door, StoreLimits

LIMITS = StoreLimits(
    max_inline_value=20_000, max_state=100_000, max_pending_writes=5, max_pending_write_bytes=30_000, max_namespaces=2
)
RESUME = -4


def thread(*, pending_writes: bool | None = True, head: int = 0) -> Thread:
    """A thread whose head holds a value of so many bytes."""
    made = Thread(ThreadId("t"), 0, 0, pending_writes, b"")
    key = BlobKey(b"k" * 32)
    apply(made.store, PutBlobs((Blob(key, "bytes", Encoding.RAW, b"x" * head, None, head, 0),)))
    apply(made.store, Checkpoint(ROOT, CheckpointId("1"), None, "msgpack", b"", b"", {"value": key}, ""))
    return made


def task(*writes: Write, name: str = "task") -> TaskWrites:
    return TaskWrites(ROOT, CheckpointId("1"), name, "", tuple(writes))


def regular(size: int = 10, idx: int = 0) -> Write:
    return Write(idx, "channel", "bytes", b"r" * size, 0)


def state(size: int = 10, idx: int = 0) -> Write:
    return Write(idx, "items", "bytes", b"s" * size, 0, is_state=True)


def control(size: int = 10) -> Write:
    return Write(RESUME, "__resume__", "bytes", b"c" * size, 0)


def admitted(door: Door, *writes: Write, into: Thread | None = None, name: str = "task") -> tuple[Write, ...]:
    kept = door.admitted_writes(task(*writes, name=name))
    if into is not None and kept is not None:
        apply(into.store, kept)
    return () if kept is None else kept.writes


@pytest.mark.parametrize("pinned", [False, None])
def test_where_they_are_off_only_state_and_control_writes_are_kept(pinned: bool | None) -> None:  # noqa: FBT001
    door = Door(thread(pending_writes=pinned), LIMITS)
    assert admitted(door, regular()) == ()
    assert admitted(door, regular(), control()) == (control(),)
    # With the one write the task counts as finished: it must have the others, too.
    assert admitted(door, regular(), state(idx=1), control()) == (regular(), state(idx=1), control())


def test_what_fits_is_kept() -> None:
    assert admitted(Door(thread(), LIMITS), regular(), regular(idx=1), control()) == (
        regular(),
        regular(idx=1),
        control(),
    )


@pytest.mark.parametrize(
    "writes",
    [
        [regular(20_001)],
        [regular(15_000), regular(15_000, 1)],
        [regular(0, idx) for idx in range(6)],
    ],
    ids=["a large one", "large together", "many"],
)
def test_a_tasks_regular_writes_are_kept_or_dropped_together(writes: list[Write]) -> None:
    door = Door(thread(), LIMITS)
    assert admitted(door, *writes) == ()
    assert admitted(door, *writes, control()) == (control(),)
    assert admitted(door, regular()) == (regular(),)


def test_the_bound_is_of_a_super_step_and_a_task_that_writes_again_counts_once() -> None:
    made = thread()
    door = Door(made, LIMITS)
    assert admitted(door, regular(14_000), into=made, name="a") != ()
    assert admitted(door, regular(14_000), into=made, name="b") != ()
    assert admitted(door, regular(14_000), into=made, name="c") == ()
    assert admitted(door, regular(14_000), into=made, name="b") != ()
    assert admitted(door, regular(100), into=made, name="d") != ()


def test_state_over_the_bound_is_refused_by_its_channel() -> None:
    made = thread()
    door = Door(made, LIMITS)
    for name in "ab":
        assert admitted(door, state(14_000), into=made, name=name)
    with pytest.raises(ValueTooLarge, match=r"'items'.*max_pending_write_bytes") as refused:
        admitted(door, state(14_000), name="c")
    assert refused.value.details["channel"] == "items"
    with pytest.raises(ValueTooLarge, match="max_inline_value"):
        admitted(Door(thread(), LIMITS), control(20_001))


def test_in_a_full_thread_regular_writes_are_dropped_and_state_is_refused() -> None:
    door = Door(thread(head=96_000), LIMITS)
    assert admitted(door, regular(5_000)) == ()
    assert admitted(door, regular(5_000), control()) == (control(),)
    for one in (state(5_000), control(5_000)):
        with pytest.raises(StateTooLarge, match="max_state"):
            admitted(door, one)


def test_what_is_written_over_eighty_percent_is_kept() -> None:
    door = Door(thread(head=85_000), LIMITS)
    assert admitted(door, regular(5_000)) == (regular(5_000),)


def test_a_new_namespace_over_the_limit_is_refused_and_the_old_ones_go_on() -> None:
    made = thread()
    door = Door(made, LIMITS)

    def checkpoint(namespace: str) -> Checkpoint:
        return Checkpoint(namespace, CheckpointId(os.urandom(4).hex()), None, "msgpack", b"", b"", {}, "")  # type: ignore[arg-type]

    door.check_record(checkpoint("node:1"))
    apply(made.store, checkpoint("node:1"))
    with pytest.raises(StateTooLarge, match="max_namespaces"):
        door.check_record(checkpoint("node:2"))
    door.check_record(checkpoint("node:1"))
    door.check_record(checkpoint(""))


def test_a_fan_out_that_does_not_fit_is_told_to_be_smaller() -> None:
    made = thread()
    door = Door(made, replace(LIMITS, max_namespaces=20_000))

    def fan_out() -> None:
        for number in range(2_000):
            namespace, under = Namespace(f"branch:{number:036}"), CheckpointId("1")
            record = b"r" * 300
            branch = Checkpoint(namespace, CheckpointId("2"), None, "msgpack", record, b"", {}, "", root_id=under)
            door.check_state(branch.stored_bytes, branch)
            apply(made.store, branch)

    with pytest.raises(StateTooLarge, match=r"\d+ calls of subgraphs are alive: call fewer in one super-step"):
        fan_out()
    assert len(made.store.checkpoints) > 100
