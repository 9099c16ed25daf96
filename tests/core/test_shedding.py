"""Each step of the shedding order alone makes a state fit that is just over; nothing that is state ever goes."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.store_histories import made
from tests.core.test_pruning import applied, check_nothing_leaks

from agentvisor.core import shed
from agentvisor.core.applying import apply
from agentvisor.core.attempts import Active
from agentvisor.core.delta import histories as delta_histories
from agentvisor.core.ids import ROOT, BlobKey, CheckpointId, Namespace, RunId, ThreadId
from agentvisor.core.records import Blob, Checkpoint, CheckpointKey, Encoding, Operation, PutBlobs, TaskWrites, Write
from agentvisor.core.runs import Attempt, Run, RunStatus
from agentvisor.core.shed import ShedStep
from agentvisor.core.thread import Settings, Thread
from agentvisor.protocol.threads import run_to_message, spec_from_message, thread_from_message, thread_to_message
from agentvisor.protocol.v1 import run_pb2, thread_pb2

BIG = 5_000
"""Bytes of what one step frees."""

ERROR, INTERRUPT, RESUME = -1, -3, -4


def encoded(thread: Thread) -> bytes:
    return thread_to_message(thread).SerializeToString()


def shedding(thread: Thread, limit: int) -> shed.Shedding:
    return shed.until_it_fits(thread, lambda: encoded(thread), limit, now_ms=9)


# --- a thread with one of everything -------------------------------------------------------------------------------


def checkpoint(
    number: int, parent: int | None, *, namespace: str = "", root: int | None = None, snapshot: bool = False
) -> list[Operation]:
    """A checkpoint with a value of its own, and a delta channel that holds something now and then."""
    key = BlobKey(f"{namespace}/{number}".encode())
    snap = BlobKey(f"snap-{namespace}/{number}".encode())
    one = Checkpoint(
        Namespace(namespace),
        CheckpointId(f"{number:05}"),
        None if parent is None else CheckpointId(f"{parent:05}"),
        "msgpack",
        b"r" * 100,
        b"",
        {"value": key, "d": snap if snapshot else None},
        "ts",
        root_id=None if root is None else CheckpointId(f"{root:05}"),
        delta_channels=() if snapshot else ("d",),
    )
    values = (key, snap) if snapshot else (key,)
    return [PutBlobs(tuple(Blob(one, "bytes", Encoding.RAW, b"v" * 200, None, 200, 0) for one in values)), one]


def writes(number: int, task: str, *those: Write, namespace: str = "") -> TaskWrites:
    return TaskWrites(Namespace(namespace), CheckpointId(f"{number:05}"), task, "", those)


def regular(size: int = 10) -> Write:
    return Write(0, "value", "bytes", b"w" * size, 0)


def delta(text: str) -> Write:
    return Write(0, "d", "bytes", text.encode(), 0, is_state=True)


def control(idx: int, text: str) -> Write:
    return Write(
        idx, {ERROR: "__error__", INTERRUPT: "__interrupt__", RESUME: "__resume__"}[idx], "b", text.encode(), 0
    )


def run(name: str, status: RunStatus, *, size: int = 10) -> Run:
    message = run_pb2.RunSpec(run_id=name, agent="a", kind=run_pb2.RUN_KIND_AGENT, input=b"i" * size)
    return Run(spec_from_message(message), status, 1, 2, output=b"o" * size if status.terminal else b"")


SMALL_OPERATIONS: list[Operation] = [
    *checkpoint(1, None, snapshot=True),
    writes(1, "t1", delta("first")),
    *checkpoint(2, 1),
    *checkpoint(3, None, namespace="sub:2", root=2, snapshot=True),
    writes(3, "s3", delta("sub-first"), namespace="sub:2"),
    *checkpoint(4, 3, namespace="sub:2", root=2),
    writes(2, "t2", delta("second")),
    *checkpoint(5, 2),
    writes(5, "two", control(INTERRUPT, "which?"), control(RESUME, "this one")),
    writes(5, "other", control(INTERRUPT, "and which?")),
    *checkpoint(6, None, namespace="now:5", root=5, snapshot=True),
    writes(6, "n6", delta("under way"), namespace="now:5"),
    *checkpoint(7, 6, namespace="now:5", root=5),
    *checkpoint(8, None, namespace="stable", root=2, snapshot=True),
]
"""Two namespaces of tasks, one of them stale; an interrupt that was answered and one that was not."""


def thread_with(*more: Operation, runs: tuple[Run, ...] = ()) -> Thread:
    thread = Thread(ThreadId("t"), 0, 0, pending_writes_enabled=True, metadata=b"")
    for one in runs or (run("r-last", RunStatus.SUCCESS),):
        thread.runs[RunId(one.run_id)] = one
    applied_raw(thread, [*SMALL_OPERATIONS, *more])
    return thread


def applied_raw(thread: Thread, operations: list[Operation]) -> None:
    for operation in operations:
        apply(thread.store, operation)


def facts(thread: Thread) -> dict[str, object]:
    """What no step may change: heads, control writes, what delta channels of heads are made of, open runs."""
    store = thread.store
    live = [one for one in store.heads if one in ("", "now:5", "stable")]
    return {
        "heads": {one: store.heads[one] for one in live},
        "controls": {
            (key, task, idx, write.data)
            for key, tasks in store.tasks.items()
            for task, one in tasks.items()
            for idx, write in one.writes.items()
            if idx < 0
        },
        "deltas": {
            one: [
                (found.seed, [write.data for task in found.writes for write in task.writes])
                for found in delta_histories(store, one, None, ("d",)).values()
            ]
            for one in live
        },
        "open": [name for name, one in thread.runs.items() if not one.status.terminal],
        "status": thread.status,
    }


# --- each step -----------------------------------------------------------------------------------------------------


def stale_history() -> Thread:
    return thread_with(
        *checkpoint(3, None, namespace="old:1", root=1),
        writes(3, "x", regular(BIG), namespace="old:1"),
        *checkpoint(4, 3, namespace="old:1", root=1),
    )


CASES: dict[ShedStep, Callable[[], Thread]] = {
    ShedStep.RUN_BODIES: lambda: thread_with(
        runs=(run("r1", RunStatus.SUCCESS, size=BIG), run("r2", RunStatus.SUCCESS), run("r3", RunStatus.PENDING))
    ),
    ShedStep.STALE_HISTORY: stale_history,
    ShedStep.STALE_NAMESPACES: lambda: thread_with(writes(4, "x", regular(BIG), namespace="sub:2")),
    ShedStep.OLD_WRITES: lambda: thread_with(writes(2, "x", regular(BIG))),
    ShedStep.HEAD_WRITES: lambda: thread_with(writes(5, "x", regular(BIG)), writes(5, "y", regular(20))),
    ShedStep.HISTORY: lambda: thread_with(
        *(
            one
            for number in range(9, 20)
            for one in checkpoint(number, number - 1 if number > 9 else 8, namespace="stable")
        )
    ),
    ShedStep.RUNS: lambda: thread_with(
        runs=(
            *(run(f"r{number:03}", RunStatus.SUCCESS) for number in range(60)),
            run("r-last", RunStatus.ERROR, size=BIG),
        )
    ),
}


@pytest.mark.parametrize("step", list(ShedStep))
def test_a_state_just_over_is_made_to_fit_by_this_step_and_none_after_it(step: ShedStep) -> None:
    # A limit that the steps before this one cannot reach: all that they could free is gone already.
    thread = CASES[step]()
    before = facts(thread)
    steps = list(shed._STEPS)
    for earlier in steps[: steps.index(step)]:
        for _ in shed._STEPS[earlier](thread):
            pass
    limit = len(encoded(thread)) - 1 + shed._COUNTS
    result = shedding(thread, limit)
    assert result.state is not None
    assert set(result.left_out) == {step}
    assert len(result.state) <= limit
    assert thread.left_out == {step.value: result.left_out[step]}
    assert facts(thread) == before
    assert facts(thread_from_message(thread_pb2.Thread.FromString(result.state))) == before


@pytest.mark.parametrize("step", list(ShedStep))
def test_all_that_a_step_may_leave_out_is_no_state(step: ShedStep) -> None:
    thread = CASES[step]()
    before = facts(thread)
    for _ in shed._STEPS[step](thread):
        pass
    assert facts(thread) == before


def test_the_steps_come_in_the_documented_order() -> None:
    assert list(shed._STEPS) == list(ShedStep)
    thread = thread_with(
        *checkpoint(3, None, namespace="old:1", root=1),
        *checkpoint(4, 3, namespace="old:1", root=1),
        writes(2, "x", regular(50)),
        writes(5, "y", regular(50)),
        runs=(run("r1", RunStatus.SUCCESS), run("r2", RunStatus.SUCCESS)),
    )
    result = shedding(thread, 0)
    assert result.state is None
    assert list(result.left_out) == list(ShedStep)


def test_a_task_that_wrote_to_a_delta_channel_keeps_its_other_writes_with_a_part_it_would_count_as_finished() -> None:
    thread = thread_with(
        writes(5, "x", delta("kept"), Write(1, "value", "b", b"w" * BIG, 0)), writes(5, "y", regular())
    )
    shedding(thread, 0)
    tasks = thread.store.tasks[CheckpointKey(ROOT, CheckpointId("00005"))]
    assert sorted(tasks["x"].writes) == [0, 1]
    assert "y" not in tasks


def test_an_interrupted_threads_last_run_stays_so_that_it_still_waits() -> None:
    paused = run("r1", RunStatus.SUCCESS, size=BIG)
    paused.paused = True
    thread = thread_with(runs=(paused,))
    result = shedding(thread, 0)
    assert result.left_out[ShedStep.RUNS] == 1
    assert thread.status.value == "interrupted"
    assert run_to_message(thread.runs[RunId("r1")]).spec.input == b""


def test_under_a_live_guest_nothing_goes_but_old_runs_and_where_it_does_not_fit_the_run_begins_anew() -> None:
    thread = thread_with(
        PutBlobs((Blob(BlobKey(b"half"), "b", Encoding.RAW, b"x", None, 1, 0),)),
        writes(5, "x", regular(BIG)),
        runs=(run("r1", RunStatus.SUCCESS), run("r2", RunStatus.SUCCESS), run("r3", RunStatus.PENDING)),
    )
    thread.settings = Settings(run_history=1)
    thread.active = Active(RunId("r3"), 1, 0, applied_seq=4, host_queue="q")
    thread.runs[RunId("r3")].attempts.append(Attempt(1, 0))
    result = shedding(thread, len(encoded(thread)))
    assert result.state is not None
    assert result.left_out == {}
    assert BlobKey(b"half") in thread.store.blobs
    assert list(thread.runs) == ["r2", "r3"]
    result = shedding(thread, len(result.state) - 100)
    assert result.state is not None
    assert thread.active is None
    assert thread.next_run(9) is thread.runs[RunId("r3")]
    assert set(result.left_out) <= {ShedStep.STALE_HISTORY, ShedStep.STALE_NAMESPACES, ShedStep.HEAD_WRITES}


# --- what the door promises ----------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60), keep=st.integers(0, 4), deletes=st.booleans())
def test_what_is_counted_as_unsheddable_is_enough_for_a_compaction(
    seed: int,
    steps: int,
    keep: int,
    deletes: bool,  # noqa: FBT001 - drawn
) -> None:
    """The door lets in what this count allows: then every compaction succeeds, and leaves the state alone."""
    thread = Thread(ThreadId("t"), 0, 0, pending_writes_enabled=True, metadata=b"")
    thread.store.keep = keep
    applied(thread.store, made(seed, steps, keep=max(keep, 1), deletes=deletes))
    thread.runs[RunId("r")] = run("r", RunStatus.SUCCESS)
    heads = dict(thread.store.heads)
    result = shedding(thread, thread.unsheddable_bytes())
    assert result.state is not None, (result.size, thread.unsheddable_bytes())
    check_nothing_leaks(thread.store)
    root = heads.get(ROOT)
    stale = {one for one in heads if ":" in one and one not in thread.store.heads}
    assert all(thread.store.heads[one] == head for one, head in heads.items() if one not in stale)
    assert thread.store.heads.get(ROOT) == root


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 40))
def test_the_count_does_not_exceed_what_is_left_by_much(seed: int, steps: int) -> None:
    thread = Thread(ThreadId("t"), 0, 0, pending_writes_enabled=True, metadata=b"")
    applied(thread.store, made(seed, steps, keep=3, deletes=False))
    counted = thread.unsheddable_bytes()
    result = shedding(thread, 0)
    assert counted <= 4 * result.size + 2048
