"""What a compaction leaves out, and what it never does."""

from tests.core.build import blob, checkpoint, key, spec, thread, write, writes

from agentvisor.core import shed
from agentvisor.core.ids import ROOT
from agentvisor.core.records import PutBlobs
from agentvisor.core.runs import Ending, RunStatus
from agentvisor.core.thread import Close, Step, Thread
from agentvisor.protocol.threads import thread_to_message


def filled(checkpoints: int, *, size: int = 1_000, channel: str = "c") -> Thread:
    one = thread()
    for number in range(checkpoints):
        one.store.apply(PutBlobs((blob(f"b{number}", data=bytes([number]) * size),)))
        one.store.apply(checkpoint(number, channels={channel: key(f"b{number}")}))
    return one


def fitted(one: Thread, limit: int) -> bytes | None:
    return shed.until_it_fits(one, lambda: thread_to_message(one).SerializeToString(), limit, now_ms=5)


def numbers(one: Thread, namespace: str = "") -> list[str]:
    return sorted(one.store.checkpoints[namespace])  # type: ignore[index]


def test_what_fits_is_left_as_it_is() -> None:
    one = filled(5)
    state = fitted(one, 100_000)
    assert state is not None
    assert len(numbers(one)) == 5


def test_the_oldest_checkpoints_go_first_with_their_values_until_it_fits() -> None:
    one = filled(16)
    state = fitted(one, 6_000)
    assert state is not None
    assert len(state) <= 6_000
    kept = numbers(one)
    assert kept[-1] == "0015"
    assert kept == [f"{number:04}" for number in range(16 - len(kept), 16)]
    assert len(one.store.blobs) == len(kept)


def test_heads_of_all_namespaces_stay_with_their_writes() -> None:
    one = filled(8)
    one.store.apply(checkpoint(3, namespace="sub|1"))
    one.store.apply(writes(7, write(0, "pending")))
    assert fitted(one, 2_000) is not None
    assert numbers(one) == ["0007"]
    assert numbers(one, "sub|1") == ["0003"]
    found = one.store.get(ROOT)
    assert found is not None
    assert found.pending


def test_a_namespace_whose_channels_live_in_writes_loses_no_checkpoint() -> None:
    # LangGraph's delta channels: the value is in the ancestors' writes, and would silently become empty.
    one = filled(8)
    one.store.apply(writes(2, write(0, "delta", channel="log")))
    before = numbers(one)
    assert fitted(one, 2_000) is None
    assert numbers(one) == before


def test_writes_to_special_channels_do_not_hold_a_namespace() -> None:
    one = filled(8)
    one.store.apply(writes(2, write(0, "x", channel="__interrupt__"), write(-4, "y", channel="delta")))
    assert fitted(one, 2_000) is not None


def test_runs_that_ended_go_before_the_thread_fails_the_last_of_them_last() -> None:
    one = filled(1)
    for number in range(3):
        run = one.accept_run(spec(f"r{number}", body=b"x" * 5_000), 1)
        one.begin_attempt(run, 2)
        assert one.close_attempt(Close(Ending.COMPLETED), 3).step is Step.FINISHED
    assert fitted(one, 8_000) is not None
    assert list(one.runs) == ["r2"]
    assert fitted(one, 3_000) is not None
    assert not one.runs


def test_runs_that_wait_are_never_left_out() -> None:
    one = filled(1)
    one.accept_run(spec("waits", body=b"x" * 5_000), 1)
    assert fitted(one, 3_000) is None
    assert "waits" in one.runs


def live(one: Thread) -> Thread:
    run = one.accept_run(spec(), 1)
    one.begin_attempt(run, 2)
    assert one.close_attempt(Close(Ending.HANDOVER, host_queue="q:h1"), 3).step is Step.ATTACH
    return one


def test_under_a_live_guest_nothing_is_left_out_not_even_blobs_that_nothing_names_yet() -> None:
    # Its next operation may be the checkpoint of those blobs.
    one = live(filled(3))
    one.store.apply(PutBlobs((blob("on its way"),)))
    assert fitted(one, 100_000) is not None
    assert key("on its way") in one.store.blobs
    assert one.active is not None


def test_under_a_live_guest_a_state_that_does_not_fit_ends_its_attempt_and_not_its_run() -> None:
    one = live(filled(16))
    state = fitted(one, 6_000)
    assert state is not None
    assert one.active is None
    run = one.runs[spec().run_id]
    assert run.status is RunStatus.RUNNING
    assert run.attempts[-1].ending is Ending.HANDOVER
    assert "smaller" in run.attempts[-1].reason
    assert one.next_run() is run
    assert one.begin_attempt(run, 9).attempt == 2
