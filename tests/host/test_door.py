"""What of a task's writes is kept, dropped, or refused at the door of a thread (S5, S6)."""

import os
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from agentvisor.core.applying import apply
from agentvisor.core.errors import StateTooLarge, ValueTooLarge
from agentvisor.core.ids import ROOT, BlobKey, CheckpointId, Namespace, RunId, ThreadId
from agentvisor.core.records import Blob, Checkpoint, Encoding, Projection, PutBlobs, TaskWrites, Write
from agentvisor.core.room import room_in
from agentvisor.core.runs import Multitask, RestartPolicy, RunKind, RunSpec
from agentvisor.core.thread import Settings, Thread
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
    apply(made.store, Checkpoint(ROOT, CheckpointId("0001"), None, "msgpack", b"", b"", {"value": key}, ""))
    return made


def task(*writes: Write, name: str = "task") -> TaskWrites:
    return TaskWrites(ROOT, CheckpointId("0001"), name, "", tuple(writes))


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
    door = Door(thread(head=89_000), LIMITS)
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
            namespace, under = Namespace(f"branch:{number:036}"), CheckpointId("0001")
            record = b"r" * 300
            branch = Checkpoint(namespace, CheckpointId("2"), None, "msgpack", record, b"", {}, "", root_id=under)
            door.check_state(branch.stored_bytes, branch)
            apply(made.store, branch)

    with pytest.raises(StateTooLarge, match=r"\d+ calls of subgraphs are alive: call fewer in one super-step"):
        fan_out()
    assert len(made.store.checkpoints) > 100


# --- the reserve of a full thread ----------------------------------------------------------------------------------


def coming(made: Thread, number: int, size: int, namespace: str = "") -> tuple[Checkpoint, int]:
    """A checkpoint with a value of its own, which is here; and what that adds."""
    key = BlobKey(os.urandom(32))
    blob = Blob(key, "bytes", Encoding.RAW, b"y" * size, None, size, 0)
    made.store.add_blob(blob)
    one = Checkpoint(Namespace(namespace), CheckpointId(f"{number:04}"), None, "msgpack", b"", b"", {"value": key}, "")
    return one, one.stored_bytes + blob.stored_bytes


def puts(door: Door, made: Thread, number: int, size: int) -> bool:
    checkpoint, more = coming(made, number, size)
    try:
        door.check_put(checkpoint, more)
    except StateTooLarge:
        return False
    apply(made.store, checkpoint)
    return True


def under_a_run(made: Thread, kind: RunKind = RunKind.AGENT) -> Door:
    made.runs.clear()
    made.active = None
    spec = RunSpec(RunId("r"), "agent", kind, Multitask.ENQUEUE, RestartPolicy(), 0, 0, "", b"body" * 50)
    made.begin_attempt(made.accept_run(spec, 0), 0)
    return Door(made, LIMITS)


def full(kind: RunKind = RunKind.AGENT) -> Thread:
    """A thread that an agent or a client has filled until it was refused."""
    made = thread(head=85_000)
    door = under_a_run(made, kind)
    size = 85_000
    while puts(door, made, 2, size + 100):
        size += 100
    return made


@pytest.mark.parametrize("kind", RunKind)
def test_a_full_thread_keeps_room_for_its_compaction(kind: RunKind) -> None:
    made = full(kind)
    assert made.unsheddable_bytes() <= room_in(LIMITS.max_state).beginnings
    made.settings = Settings(state_bytes=LIMITS.max_state)
    made.runs.clear()
    made.active = None
    spec = RunSpec(RunId("next"), "agent", RunKind.AGENT, Multitask.ENQUEUE, RestartPolicy(), 0, 0, "", b"b" * 500)
    made.check_run(spec)


def test_a_full_thread_takes_a_smaller_checkpoint_of_a_client() -> None:
    made = full(RunKind.SESSION)
    door = under_a_run(made, RunKind.SESSION)
    held = made.unsheddable_bytes()
    assert not puts(door, made, 3, held)
    assert puts(door, made, 3, 1_000)
    assert made.unsheddable_bytes() < held


def test_a_thread_over_a_limit_that_was_lowered_takes_what_makes_it_smaller() -> None:
    made = thread(head=150_000)
    door = under_a_run(made, RunKind.SESSION)
    assert not puts(door, made, 2, 160_000)
    assert puts(door, made, 2, 140_000)
    assert puts(door, made, 3, 1_000)


def test_a_run_in_a_full_thread_begins_goes_on_and_makes_it_smaller() -> None:
    made = full()
    for number in range(1, 30, 10):
        door = under_a_run(made)
        held = head_bytes(made)
        assert puts(door, made, 10 + number, held + 400), "the input, besides what is there"
        assert puts(door, made, 11 + number, held + 300), "what came of the input"
        assert puts(door, made, 12 + number, held + 450), "a node on the way"
        assert not puts(door, made, 13 + number, held + 3_000), "it grows"
        assert admitted(door, control(200)), "it can say how it ended"
        assert puts(door, made, 14 + number, held)
    assert puts(door, made, 90, 10_000)
    assert puts(door, made, 91, 20_000)


def head_bytes(made: Thread) -> int:
    head = made.store.get(ROOT)
    assert head is not None
    key = head.checkpoint.channels["value"]
    assert key is not None
    return len(made.store.blobs[key].data)


def test_delta_updates_that_fill_a_thread_are_named_with_the_way_out() -> None:
    made = thread()
    door = Door(made, replace(LIMITS, max_pending_write_bytes=10**6, max_pending_writes=1_000))

    def collect() -> None:
        for number in range(100):
            admitted(door, state(2_000), into=made, name=f"{number}")

    with pytest.raises(StateTooLarge, match=r"delta channels \('items'\).*smaller snapshot_frequency") as refused:
        collect()
    assert refused.value.details["channel"] == "items"


# --- what is said --------------------------------------------------------------------------------------------------


def test_a_thread_that_comes_near_its_limit_is_said_once_and_only_for_what_was_admitted() -> None:
    made = thread()
    with capture_logs() as logs:
        door = Door(made, LIMITS)
        assert not puts(door, made, 2, 99_000)
        assert logs == []
        assert puts(door, made, 2, 85_000)
        for number in range(3, 6):
            assert puts(door, made, number, 85_000)
        assert puts(Door(made, LIMITS), made, 7, 85_000), "another attempt"
    assert [one["event"] for one in logs] == ["thread_near_limit"]
    assert logs[0]["bytes"] == pytest.approx(86_500, abs=500)


@pytest.mark.parametrize(
    "writes, says",
    [
        ([regular(20_001)], ("storage.max_inline_value", 20_001, 20_000)),
        ([regular(15_000), regular(15_100, 1)], ("storage.max_pending_write_bytes", 30_258, 30_000)),
        ([regular(0, idx) for idx in range(6)], ("storage.max_pending_writes", 6, 5)),
    ],
)
def test_dropped_writes_are_logged_with_the_limit_that_was_hit(writes: list[Write], says: tuple[str, int, int]) -> None:
    with capture_logs() as logs:
        admitted(Door(thread(), LIMITS), *writes)
    assert [(one["setting"], one["size"], one["limit"]) for one in logs] == [says]


def test_what_the_sdk_left_out_is_logged_with_its_limit() -> None:
    with capture_logs() as logs:
        Door(thread(), LIMITS).note_left_out(task(), "storage.max_value", 10**9)
    assert [(one["setting"], one["size"], one["limit"]) for one in logs] == [
        ("storage.max_value", 10**9, LIMITS.max_value)
    ]


def test_the_restarts_of_a_run_get_nothing_more_of_the_reserve() -> None:
    made = full()
    made.runs[RunId("r")].attempts[0].progressed = True
    held, size = made.unsheddable_bytes(), head_bytes(made)
    for number in range(20):
        door = Door(made, LIMITS)
        assert not puts(door, made, 10 + number, size + 1_500)
        assert puts(door, made, 10 + number, size)
    assert made.unsheddable_bytes() <= held


def test_a_projection_that_goes_with_its_checkpoint_is_no_room_for_the_next() -> None:
    made = full()
    made.runs[RunId("r")].attempts[0].progressed = True
    held, size = made.unsheddable_bytes(), head_bytes(made)
    for number in range(10, 40):
        door = Door(made, LIMITS)
        size += 100 if puts(door, made, number, size + 100) else 0
        shown = Projection(ROOT, CheckpointId(f"{number:04}"), ("node" * 30,), (), ())
        door.check_projection(shown)
        apply(made.store, shown)
    assert made.unsheddable_bytes() <= held + 500
