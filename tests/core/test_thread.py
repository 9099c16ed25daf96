"""The moves of a thread: who is accepted, what follows an ending, what an accepted cancel does, what others see."""

import pytest
from tests.core.build import checkpoint, projection, spec, thread, write, writes

from agentvisor.core import deadlines, updates
from agentvisor.core.attempts import ATTACH_OFFERS, Active, Close, Next, Source, Step
from agentvisor.core.errors import Conflict, NotFound, StateTooLarge, ThreadFailed
from agentvisor.core.ids import AttemptId, RunId
from agentvisor.core.interrupts import Interrupt, Note, Terms
from agentvisor.core.records import Operation
from agentvisor.core.runs import CONSEQUENCES, Ending, Follow, Multitask, RestartPolicy, Run, RunKind, RunStatus
from agentvisor.core.thread import Settings, Thread
from agentvisor.core.thread_status import ThreadStatus

QUEUE = "q:h1"
HANDOVER = Close(Ending.HANDOVER, host_queue=QUEUE)
LOST_ATTACH = Close(Ending.HOST_GONE, heartbeat_seen=False)


def running(**options: object) -> tuple[Thread, Run, Active]:
    one = thread()
    run = one.accept_run(spec(**options), 1)  # type: ignore[arg-type]
    return one, run, one.begin_attempt(run, 2)


# --- acceptance ------------------------------------------------------------------------------------------------------


def test_accepting_the_same_run_again_changes_nothing() -> None:
    one = thread()
    run = one.accept_run(spec(), 1)
    revision = one.revision
    assert one.accept_run(spec(), 9) is run
    assert (one.revision, run.created_at_ms) == (revision, 1)


def test_a_run_behind_another_waits_or_is_refused_as_its_caller_wants() -> None:
    one, first, _ = running()
    assert one.accept_run(spec("r2"), 3).status is RunStatus.PENDING
    with pytest.raises(Conflict, match="busy with run r1"):
        one.accept_run(spec("r3", multitask=Multitask.REJECT), 3)
    assert one.next_run(9) is first
    assert list(one.runs) == ["r1", "r2"]


def test_a_session_is_refused_while_a_run_is_active_and_a_run_makes_a_session_yield() -> None:
    one, _, _ = running()
    with pytest.raises(Conflict):
        one.accept_run(spec("s1", kind=RunKind.SESSION), 3)
    other, _, _ = running(run_id="s1", kind=RunKind.SESSION)
    assert not other.session_must_yield()
    other.accept_run(spec("r1", multitask=Multitask.REJECT), 3)
    assert other.session_must_yield()


def test_a_run_whose_input_no_compaction_could_carry_is_refused() -> None:
    one = thread()
    one.settings = Settings(state_bytes=10_000)
    with pytest.raises(StateTooLarge, match=r"limit is 10000"):
        one.accept_run(spec(body=b"x" * 9_500), 1)
    assert not one.runs


def test_metadata_grows_to_a_quarter_of_a_threads_room_and_no_further_than_what_is_left_of_it() -> None:
    one = thread()
    one.settings = Settings(state_bytes=100_000)
    one.metadata = b"m" * 20_000
    one.check_metadata(b"m" * 25_000)
    with pytest.raises(StateTooLarge, match="would have 25001 bytes, and there is room for 25000"):
        one.check_metadata(b"m" * 25_001)
    one.accept_run(spec(body=b"x" * 70_000), 1)
    with pytest.raises(StateTooLarge, match="would have 24000 bytes"):
        one.check_metadata(b"m" * 24_000)
    # What does not grow is taken whatever else the thread holds.
    one.settings = Settings(state_bytes=50_000)
    one.check_metadata(b"m" * 20_000)


def test_a_failed_thread_takes_no_runs_and_says_why() -> None:
    one, run, _ = running()
    queued = one.accept_run(spec("r2"), 3)
    one.fail("StateTooLarge", "it does not fit", 4)
    assert [one.status for one in (run, queued)] == [RunStatus.ERROR, RunStatus.ERROR]
    assert run.error_message == queued.error_message == "it does not fit"
    assert one.active is None
    assert one.next_run(9) is None
    assert one.status is ThreadStatus.ERROR
    with pytest.raises(ThreadFailed, match="it does not fit"):
        one.accept_run(spec("r3"), 5)


# --- endings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [one for one in Ending if CONSEQUENCES[one].follow is not Follow.ATTACH])
def test_what_follows_an_ending_is_what_the_table_says(ending: Ending) -> None:
    one, run, _ = running()
    follows = one.close_attempt(Close(ending), 5)
    row = CONSEQUENCES[ending]
    assert one.active is None
    assert run.attempts[-1].ending is ending
    assert follows.step is (Step.FINISHED if row.follow is Follow.END else Step.AGAIN)
    assert run.status is (row.status if row.follow is Follow.END else RunStatus.RUNNING)
    assert (follows.delay_ms > 0) is (row.follow is Follow.RESTART)


@pytest.mark.parametrize("ending", [one for one in Ending if CONSEQUENCES[one].follow is not Follow.END])
def test_cancelkeep_cancarry_after_an_accepted_cancel_no_ending_is_followed_by_an_attempt(ending: Ending) -> None:
    one, run, _ = running()
    one.request_cancel(run.run_id, 3)
    assert one.close_attempt(Close(ending, host_queue=QUEUE), 5) == Next(Step.FINISHED)
    assert run.status is RunStatus.INTERRUPTED
    assert one.active is None


@pytest.mark.parametrize("ending", [Ending.HOST_GONE, Ending.NOT_STARTED, Ending.GUEST_GONE])
def test_cancarry_a_cancel_during_an_attach_ends_the_run_whatever_becomes_of_the_attach(ending: Ending) -> None:
    one, run, _ = running()
    one.close_attempt(HANDOVER, 3)
    one.request_cancel(run.run_id, 4)
    assert not run.status.terminal
    assert one.close_attempt(Close(ending, heartbeat_seen=False), 5) == Next(Step.FINISHED)
    assert run.status is RunStatus.INTERRUPTED


def test_an_agent_that_completed_although_it_was_cancelled_has_completed() -> None:
    one, run, _ = running()
    one.request_cancel(run.run_id, 3)
    one.close_attempt(Close(Ending.COMPLETED, output=b"1"), 5)
    assert (run.status, run.output) == (RunStatus.SUCCESS, b"1")


def test_the_caller_of_a_run_that_used_up_its_restarts_reads_what_happened_and_what_to_do() -> None:
    one, run, _ = running(restart=RestartPolicy(max_attempts=1))
    assert one.close_attempt(Close(Ending.AGENT_SIGNAL, error_message="killed by signal 9"), 3).step is Step.AGAIN
    one.begin_attempt(run, 4)
    assert one.close_attempt(Close(Ending.AGENT_SIGNAL, error_message="killed by signal 9"), 5).step is Step.FINISHED
    assert run.status is RunStatus.ERROR
    assert "killed by signal 9" in run.error_message
    assert "2 attempts" in run.error_message


def test_an_attempt_remembers_its_host_and_its_last_commit() -> None:
    one, run, _ = running()
    one.apply([checkpoint(1)], Source("h1", 100, 200), 3)
    one.close_attempt(Close(Ending.HOST_GONE, source=Source("", 0, 150)), 5)
    attempt = run.attempts[-1]
    assert (attempt.host_id, attempt.started_at_ms, attempt.committed_at_ms) == ("h1", 100, 200)


# --- hand-over -------------------------------------------------------------------------------------------------------


def test_carryseq_a_handover_keeps_the_attempt_its_count_and_its_deadline() -> None:
    one, run, active = running()
    one.apply([checkpoint(1), checkpoint(2)], Source(), 3)
    assert one.close_attempt(HANDOVER, 4) == Next(Step.ATTACH)
    again = one.begin_attempt(run, 9)
    assert (again.id, again.applied_seq, again.deadline_ms) == (AttemptId(RunId("r1"), 1), 2, active.deadline_ms)
    assert again.attaching
    assert len(run.attempts) == 1


def test_reattach_a_token_that_nobody_took_is_offered_again_so_often_and_no_more() -> None:
    one, run, _ = running()
    one.close_attempt(HANDOVER, 3)
    for _ in range(ATTACH_OFFERS):
        assert one.close_attempt(LOST_ATTACH, 4) == Next(Step.ATTACH)
        assert one.begin_attempt(run, 5).attempt == 1
    assert one.close_attempt(LOST_ATTACH, 6).step is Step.AGAIN
    assert one.begin_attempt(run, 7).attempt == 2


def test_reattach_a_host_that_does_not_even_ask_is_offered_its_guests_token_once_more() -> None:
    one, run, _ = running()
    one.close_attempt(HANDOVER, 3)
    unpolled = Close(Ending.HOST_GONE, heartbeat_seen=False, polled=False)
    assert one.close_attempt(unpolled, 4) == Next(Step.ATTACH)
    assert one.close_attempt(unpolled, 5).step is Step.AGAIN
    assert one.begin_attempt(run, 6).attempt == 2


def test_reattach_a_guest_whose_heartbeats_stopped_after_the_attach_is_not_offered_anything() -> None:
    one, run, _ = running()
    one.close_attempt(HANDOVER, 3)
    assert one.close_attempt(Close(Ending.HOST_GONE, heartbeat_seen=True), 4).step is Step.AGAIN
    assert one.begin_attempt(run, 5).attempt == 2


def test_reattach_another_handover_starts_the_count_anew() -> None:
    one, _, _ = running()
    one.close_attempt(HANDOVER, 3)
    one.close_attempt(LOST_ATTACH, 4)
    one.close_attempt(HANDOVER, 5)
    assert one.active is not None
    assert one.active.attach_offers == 0


def test_notstarted_a_token_that_a_compaction_took_back_is_offered_again_to_the_same_host() -> None:
    one, run, _ = running()
    one.close_attempt(HANDOVER, 3)
    for _ in range(ATTACH_OFFERS + 2):
        assert one.close_attempt(Close(Ending.NOT_STARTED), 4) == Next(Step.ATTACH)
    assert one.begin_attempt(run, 5).host_queue == QUEUE


def test_notstarted_an_attempt_that_never_began_is_followed_by_another_at_no_cost() -> None:
    one, run, _ = running(restart=RestartPolicy(max_attempts=0))
    assert one.close_attempt(Close(Ending.NOT_STARTED), 3) == Next(Step.AGAIN)
    assert one.begin_attempt(run, 4).attempt == 2


def test_attachonly_a_guest_that_did_not_outlive_the_compaction_means_a_new_attempt() -> None:
    one, run, _ = running()
    one.apply([checkpoint(1)], Source(), 2)
    one.close_attempt(HANDOVER, 3)
    assert one.close_attempt(Close(Ending.GUEST_GONE), 4).step is Step.AGAIN
    active = one.begin_attempt(run, 5)
    assert (active.attempt, active.applied_seq, active.attaching) == (2, 0, False)


# --- cancels ---------------------------------------------------------------------------------------------------------


def test_a_run_that_waits_is_cancelled_at_once_and_one_that_runs_when_its_attempt_ends() -> None:
    one, first, _ = running()
    second = one.accept_run(spec("r2"), 3)
    one.request_cancel(second.run_id, 4)
    one.request_cancel(first.run_id, 4)
    assert (second.status, first.status) == (RunStatus.INTERRUPTED, RunStatus.RUNNING)


@pytest.mark.parametrize("run_id", ["nobody", "r1"])
def test_an_unknown_or_finished_run_cannot_be_cancelled(run_id: str) -> None:
    one, _, _ = running()
    one.close_attempt(Close(Ending.COMPLETED), 3)
    with pytest.raises(NotFound, match=r"unknown|already success"):
        one.request_cancel(RunId(run_id), 4)


# --- sessions --------------------------------------------------------------------------------------------------------


def test_a_session_that_a_run_has_overtaken_ends_although_it_never_began() -> None:
    for handed_over in (False, True):
        one = running(run_id="s1", kind=RunKind.SESSION)[0]
        if handed_over:
            one.close_attempt(Close(Ending.HANDOVER, host_queue="q"), 3)
        one.accept_run(spec("r1"), 4)
        assert one.session_must_yield()
        assert one.close_attempt(Close(Ending.NOT_STARTED), 5).step is Step.FINISHED
        assert one.next_run(9) is one.runs[RunId("r1")]


def test_a_session_leaves_no_record_and_is_never_restarted() -> None:
    for ending in (Ending.COMPLETED, Ending.HOST_GONE, Ending.HOST_STOPPED, Ending.CANCELLED):
        one, _, _ = running(run_id="s1", kind=RunKind.SESSION)
        assert one.status is ThreadStatus.IDLE
        assert one.close_attempt(Close(ending), 3).step is Step.FINISHED
        assert not one.runs
        assert one.status is ThreadStatus.IDLE


# --- updates ---------------------------------------------------------------------------------------------------------


def updated(one: Thread, run_id: str, ending: Ending = Ending.COMPLETED, *operations: Operation) -> Run:
    run = one.accept_run(spec(run_id, kind=RunKind.UPDATE), 5)
    one.begin_attempt(run, 6)
    one.apply([*operations], Source(), 7)
    one.close_attempt(Close(ending, error_type="E", error_message="no", output=b"{}"), 7)
    return run


def test_an_update_is_refused_beside_a_run_and_waits_behind_another_update() -> None:
    one, _, _ = running()
    with pytest.raises(Conflict, match="busy with run r1"):
        one.accept_run(spec("u1", kind=RunKind.UPDATE), 3)
    one.close_attempt(Close(Ending.COMPLETED), 4)
    one.accept_run(spec("u1", kind=RunKind.UPDATE), 5)
    assert one.accept_run(spec("u2", kind=RunKind.UPDATE), 5).status is RunStatus.PENDING
    assert one.accept_run(spec("r2", multitask=Multitask.REJECT), 5).status is RunStatus.PENDING
    other, _, _ = running(run_id="s1", kind=RunKind.SESSION)
    other.accept_run(spec("u1", kind=RunKind.UPDATE), 3)
    assert other.session_must_yield()


def test_an_update_is_restarted_as_a_run_is() -> None:
    one, run, _ = running(run_id="u1", kind=RunKind.UPDATE)
    assert one.close_attempt(Close(Ending.HOST_STOPPED), 3) == Next(Step.AGAIN)
    one.begin_attempt(run, 4)
    assert one.close_attempt(Close(Ending.AGENT_SIGNAL), 5).step is Step.AGAIN
    one.begin_attempt(run, 6)
    assert one.close_attempt(Close(Ending.COMPLETED), 7) == Next(Step.FINISHED)
    assert run.status is RunStatus.SUCCESS


def test_the_status_is_what_the_last_run_or_update_left() -> None:
    one, _, _ = running()
    one.close_attempt(Close(Ending.AGENT_ERROR, "ValueError", "boom"), 3)
    assert updated(one, "u1", Ending.AGENT_ERROR).error_message == "no"
    assert one.status is ThreadStatus.ERROR
    updated(one, "u2", Ending.COMPLETED, checkpoint(1), projection(1, "next_node"))
    assert one.status is ThreadStatus.INTERRUPTED
    updated(one, "u3", Ending.COMPLETED, checkpoint(2), projection(2))
    assert one.status is ThreadStatus.IDLE
    assert [run.run_id for run in one.runs.values() if run.is_agent] == ["r1"]


def test_a_thread_keeps_no_more_updates_than_their_callers_need() -> None:
    one = thread()
    for number in range(updates.KEPT + 5):
        updated(one, f"u{number}")
    assert list(one.runs) == [f"u{number}" for number in range(5, updates.KEPT + 5)]


@pytest.mark.parametrize("asks", [True, False])
def test_a_graphs_question_waits_on_only_where_its_checkpoint_still_holds_it(*, asks: bool) -> None:
    one, _, _ = running()
    asked = Interrupt("i1", "input", b"", terms=Terms(deadline_ms=1_000))
    one.apply([checkpoint(1), writes(1, write(-3, "sure?")), Note(asked)], Source(), 2)
    one.close_attempt(Close(Ending.PAUSED), 3)
    assert deadlines.next_deadline_ms(one) == 1_000
    updated(one, "u1", Ending.COMPLETED, checkpoint(2, namespace="child:1") if asks else checkpoint(2))
    assert deadlines.next_deadline_ms(one) == (1_000 if asks else None)


# --- what is told of ends --------------------------------------------------------------------------------------------


def told(one: Thread) -> list[tuple[str, int | None, str]]:
    return [(end.run.run_id, end.attempt.attempt if end.attempt else None, end.outcome) for end in one.ends]


def test_each_attempt_and_each_run_that_ends_is_told_once_in_its_order() -> None:
    one, run, _ = running()
    one.accept_run(spec("r2"), 3)
    one.request_cancel(RunId("r2"), 4)
    one.close_attempt(Close(Ending.HOST_GONE), 5)
    one.begin_attempt(run, 6)
    one.close_attempt(Close(Ending.PAUSED), 7)
    of_runs = [each for each in told(one) if each[1] is None]
    assert of_runs == [("r2", None, "interrupted"), ("r1", None, "paused")]
    assert [each[:2] for each in told(one)] == [("r2", None), ("r1", 1), ("r1", 2), ("r1", None)]
    assert one.ends[-1].seconds == 0.006


def test_a_run_that_is_undone_is_told_as_rolled_back() -> None:
    one, _, _ = running()
    one.accept_run(spec("r2", multitask=Multitask.ROLLBACK), 3)
    one.close_attempt(Close(Ending.CANCELLED), 4)
    assert told(one)[-1] == ("r1", None, "rolled_back")


# --- what others see -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ending, status",
    [
        (Ending.COMPLETED, ThreadStatus.IDLE),
        (Ending.PAUSED, ThreadStatus.INTERRUPTED),
        (Ending.CANCELLED, ThreadStatus.IDLE),
        (Ending.AGENT_ERROR, ThreadStatus.ERROR),
        (Ending.TIME_BUDGET, ThreadStatus.ERROR),
    ],
)
def test_a_threads_status_is_busy_during_a_run_and_then_what_the_last_run_left(
    ending: Ending, status: ThreadStatus
) -> None:
    one = thread()
    assert one.status is ThreadStatus.IDLE
    run = one.accept_run(spec(), 1)
    assert one.status is ThreadStatus.BUSY
    one.begin_attempt(run, 2)
    one.close_attempt(Close(ending), 3)
    assert one.status is status


def test_a_cancelled_run_that_left_work_leaves_the_thread_interrupted() -> None:
    one, run, _ = running()
    one.apply([checkpoint(1), projection(1, "next_node")], Source(), 2)
    one.request_cancel(run.run_id, 3)
    one.close_attempt(Close(Ending.CANCELLED), 4)
    assert one.status is ThreadStatus.INTERRUPTED


def test_every_change_is_counted_so_that_pages_of_a_read_can_agree() -> None:
    one = thread()
    seen = [one.revision]
    run = one.accept_run(spec(), 1)
    seen.append(one.revision)
    one.begin_attempt(run, 2)
    seen.append(one.revision)
    one.apply([checkpoint(1)], Source(), 3)
    seen.append(one.revision)
    one.close_attempt(Close(Ending.COMPLETED), 4)
    seen.append(one.revision)
    assert seen == sorted(set(seen))
