"""The restart policy beside a model that reckons it from the page's words, over whole lives of runs that are lost."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.build import checkpoint, spec, thread

from agentvisor.core.attempts import Close, Source, Step
from agentvisor.core.runs import CONSEQUENCES, Ending, Follow, RestartPolicy, RunStatus
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.protocol.threads import thread_from_message, thread_to_message
from agentvisor.protocol.v1 import thread_pb2

LOSSES = [ending for ending, row in CONSEQUENCES.items() if row.follow is Follow.RESTART]


@dataclass(frozen=True)
class Life:
    """One attempt: how long until it began, how long it committed, and how long until its loss was noticed."""

    starting_ms: int
    working_ms: int
    noticing_ms: int
    checkpoints: int
    ending: Ending


LIVES = st.lists(
    st.builds(
        Life,
        st.integers(0, 5_000),
        st.integers(0, 100_000),
        st.integers(0, 90_000),
        st.integers(0, 2),
        st.sampled_from(LOSSES),
    ),
    min_size=1,
    max_size=12,
)
POLICIES = st.builds(
    RestartPolicy,
    st.integers(0, 5),
    st.integers(0, 5_000),
    st.integers(0, 30_000),
    st.integers(0, 600_000),
    st.booleans(),
)


def reckoned(policy: RestartPolicy, restarts: int, idle_ms: int) -> int | None:
    """What the page says: so many restarts, doubling waits under a cap, so long without a live attempt in all."""
    wait = policy.initial_backoff_ms
    for _ in range(restarts - 1):
        wait *= 2
    wait = min(wait, policy.max_backoff_ms)
    return wait if restarts <= policy.max_attempts and idle_ms + wait <= policy.max_elapsed_ms else None


@given(POLICIES, LIVES)
@settings(deadline=None)
def test_a_run_that_is_lost_again_and_again_is_restarted_as_the_policy_says_and_then_ends(
    policy: RestartPolicy, lives: list[Life]
) -> None:
    one = thread()
    run = one.accept_run(spec("r1", restart=policy), 0)
    now = idle_ms = restarts = stored = 0
    for life in lives:
        one.begin_attempt(run, now)
        now += life.starting_ms
        idle_ms += life.starting_ms if restarts or len(run.attempts) > 1 else 0
        began, now = now, now + life.working_ms
        fresh = [checkpoint(number) for number in range(stored, stored + life.checkpoints)]
        one.apply(fresh, Source("host", max(began, 1), max(now, 1)), now)
        stored += life.checkpoints
        now += life.noticing_ms
        idle_ms += life.noticing_ms
        # Whatever the thread knows of its attempts crosses a compaction.
        one = thread_from_message(thread_pb2.Thread.FromString(thread_to_message(one).SerializeToString()))
        run = one.runs[run.run_id]
        restarts = 1 if policy.reset_on_progress and life.checkpoints else restarts + 1
        expected = reckoned(policy, restarts, idle_ms)
        follows = one.close_attempt(Close(life.ending), now)
        if expected is None:
            assert follows.step is Step.FINISHED
            break
        assert (follows.step, follows.delay_ms) == (Step.AGAIN, expected)
        assert one.status is ThreadStatus.BUSY
        assert one.next_run(0) is run
        now += expected
        idle_ms += expected
    else:
        return
    # It is over, and says so; nothing keeps the thread busy, and the next run is taken.
    assert run.status is RunStatus.ERROR
    assert run.error_message
    assert (one.status, one.next_run(0), one.active) == (ThreadStatus.ERROR, None, None)
    following = one.accept_run(spec("r2"), now)
    assert one.begin_attempt(following, now).attempt == 1


def test_a_run_that_gets_on_outlives_any_number_of_losses_when_progress_counts() -> None:
    one = thread()
    policy = RestartPolicy(max_attempts=1, max_elapsed_ms=1_000_000, reset_on_progress=True)
    run = one.accept_run(spec(restart=policy), 0)
    for number in range(50):
        one.begin_attempt(run, number)
        one.apply([checkpoint(number)], Source("host", 1, number), number)
        follows = one.close_attempt(Close(Ending.AGENT_SIGNAL), number)
        assert (follows.step, follows.delay_ms) == (Step.AGAIN, policy.initial_backoff_ms)


@pytest.mark.parametrize("again", [[], [checkpoint(0)]], ids=["nothing", "what is there already"])
def test_an_attempt_that_stored_nothing_new_has_not_got_on(again: list[object]) -> None:
    one = thread()
    run = one.accept_run(spec(restart=RestartPolicy(max_attempts=1, reset_on_progress=True)), 0)
    steps = []
    for operations in ([checkpoint(0)], again):
        one.begin_attempt(run, 0)
        one.apply(operations, Source("host", 1, 1), 0)
        steps.append(one.close_attempt(Close(Ending.AGENT_SIGNAL), 0).step)
    assert steps == [Step.AGAIN, Step.FINISHED]


def test_a_host_whose_clock_is_an_hour_slow_does_not_make_a_loss_look_old() -> None:
    one, hour = thread(), 3_600_000
    run = one.accept_run(spec(restart=RestartPolicy()), 2 * hour)
    waited = []
    for number in range(4):
        now = 2 * hour + number * 60_000
        one.begin_attempt(run, now)
        one.apply([], Source("host", now - hour, now - hour + 30_000), now)
        waited.append(one.close_attempt(Close(Ending.HOST_GONE), now + 40_000).delay_ms)
    assert waited == [2_000, 4_000, 8_000, 0]


def test_no_restarts_means_none_whatever_was_stored() -> None:
    one = thread()
    run = one.accept_run(spec(restart=RestartPolicy(max_attempts=0, reset_on_progress=True)), 0)
    one.begin_attempt(run, 0)
    one.apply([checkpoint(0)], Source("host", 1, 1), 0)
    assert one.close_attempt(Close(Ending.HOST_GONE), 0).step is Step.FINISHED
