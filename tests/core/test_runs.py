"""The table of endings is total and consistent, and the restart policy keeps to its numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentvisor.core.ids import RunId
from agentvisor.core.restarts import restart_delay_ms, restarts_used, time_left_ms
from agentvisor.core.runs import (
    CONSEQUENCES,
    Attempt,
    Ending,
    Follow,
    Multitask,
    RestartPolicy,
    Run,
    RunKind,
    RunSpec,
    RunStatus,
)
from agentvisor.protocol.v1 import run_pb2

RESTARTS = {ending for ending, row in CONSEQUENCES.items() if row.follow is Follow.RESTART}
DEFAULT = RestartPolicy()


def run_with(*attempts: Attempt, policy: RestartPolicy = DEFAULT) -> Run:
    spec = RunSpec(RunId("r"), "agent", RunKind.AGENT, Multitask.ENQUEUE, policy, 1_000, 1_000, "", b"")
    return Run(spec, RunStatus.RUNNING, 0, 0, list(attempts))


def failed(number: int, *, at: int, ending: Ending = Ending.HOST_GONE, committed: int = 0) -> Attempt:
    return Attempt(number, scheduled_at_ms=at, ended_at_ms=at, ending=ending, committed_at_ms=committed)


def test_every_ending_has_its_row_and_every_row_ends_a_run_terminally() -> None:
    assert set(CONSEQUENCES) == set(Ending)
    assert all(row.status.terminal for row in CONSEQUENCES.values())
    assert all(row.says for row in CONSEQUENCES.values())


def test_endings_and_statuses_are_those_of_the_wire() -> None:
    def wire(enum: object, prefix: str) -> dict[str, int]:
        items: dict[str, int] = dict(enum.items())  # type: ignore[attr-defined]
        return {name.removeprefix(prefix): number for name, number in items.items() if number}

    assert wire(run_pb2.Ending, "ENDING_") == {one.name: one.value for one in Ending}
    assert wire(run_pb2.RunStatus, "RUN_STATUS_") == {one.name: one.value for one in RunStatus}
    assert wire(run_pb2.RunKind, "RUN_KIND_") == {one.name: one.value for one in RunKind}
    assert wire(run_pb2.MultitaskStrategy, "MULTITASK_STRATEGY_") == {one.name: one.value for one in Multitask}


@pytest.mark.parametrize(
    "ending",
    [Ending.AGENT_ERROR, Ending.TIME_BUDGET, Ending.CANCELLED, Ending.PAUSED, Ending.COMPLETED, Ending.COULD_NOT_START],
)
def test_what_the_page_says_is_never_restarted_ends_the_run(ending: Ending) -> None:
    assert CONSEQUENCES[ending].follow is Follow.END


@pytest.mark.parametrize(
    "ending",
    [
        Ending.AGENT_SIGNAL,
        Ending.AGENT_OUT_OF_MEMORY,
        Ending.GUEST_GONE,
        Ending.GUEST_UNRESPONSIVE,
        Ending.HOST_GONE,
        Ending.REPORT_LOST,
    ],
)
def test_what_the_page_says_is_restarted_is_restarted(ending: Ending) -> None:
    assert CONSEQUENCES[ending].follow is Follow.RESTART


def test_a_host_that_is_stopped_and_a_compaction_use_up_no_restart() -> None:
    run = run_with(
        failed(1, at=0, ending=Ending.HOST_STOPPED),
        failed(2, at=0, ending=Ending.HANDOVER),
        failed(3, at=0, ending=Ending.NOT_STARTED),
    )
    assert restarts_used(run) == 0


def test_the_time_budget_goes_on_where_a_host_was_stopped_and_is_fresh_after_a_loss() -> None:
    def lived(number: int, began: int, ended: int, ending: Ending) -> Attempt:
        return Attempt(number, scheduled_at_ms=began, started_at_ms=began, ended_at_ms=ended, ending=ending)

    stopped = [lived(1, 100, 400, Ending.HOST_STOPPED), lived(2, 5_000, 5_100, Ending.HOST_STOPPED)]
    now = Attempt(3, scheduled_at_ms=9_000)
    assert time_left_ms(run_with(now)) == 1_000
    # What passed between the hosts does not count.
    assert time_left_ms(run_with(*stopped, now)) == 600
    assert time_left_ms(run_with(*stopped, lived(3, 9_000, 9_200, Ending.HOST_GONE), now)) == 1_000
    assert time_left_ms(run_with(lived(1, 100, 200, Ending.HOST_GONE), *stopped, now)) == 600
    assert time_left_ms(run_with(lived(1, 100, 2_100, Ending.HOST_STOPPED), now)) == 0
    # Given back before anything of it had begun.
    assert time_left_ms(run_with(Attempt(1, 0, ended_at_ms=700, ending=Ending.HOST_STOPPED), now)) == 1_000


def test_three_restarts_with_growing_pauses_then_no_more() -> None:
    delays = [
        restart_delay_ms(run_with(*(failed(number, at=0) for number in range(1, count + 1))), 0)
        for count in range(1, 5)
    ]
    assert delays == [2_000, 4_000, 8_000, None]


def test_the_pause_is_capped() -> None:
    policy = RestartPolicy(max_attempts=20)
    run = run_with(*(failed(number, at=0) for number in range(1, 16)), policy=policy)
    assert restart_delay_ms(run, 0) == 30_000


def test_zero_restarts_turn_them_off() -> None:
    assert restart_delay_ms(run_with(failed(1, at=0), policy=RestartPolicy(max_attempts=0)), 0) is None


def test_time_counts_from_the_last_commit_of_the_lost_attempt_and_not_from_the_noticing_of_its_loss() -> None:
    minute = 60_000
    run = run_with(failed(1, at=20 * minute, committed=9 * minute))
    assert restart_delay_ms(run, 20 * minute) is None  # eleven minutes without a live attempt
    run = run_with(failed(1, at=20 * minute, committed=19 * minute))
    assert restart_delay_ms(run, 20 * minute) == 2_000


def test_time_in_which_an_attempt_worked_does_not_count() -> None:
    hour = 3_600_000
    first = Attempt(1, 0, started_at_ms=0, ended_at_ms=hour, ending=Ending.AGENT_SIGNAL, committed_at_ms=hour)
    second = Attempt(
        2, hour + 2_000, started_at_ms=hour + 2_000, ended_at_ms=2 * hour, ending=Ending.AGENT_SIGNAL,
        committed_at_ms=2 * hour,
    )  # fmt: skip
    assert restart_delay_ms(run_with(first, second), 2 * hour) == 4_000


@given(
    st.lists(st.sampled_from(sorted(Ending)), min_size=1, max_size=8),
    st.builds(
        RestartPolicy,
        st.integers(0, 5),
        st.integers(0, 10_000),
        st.integers(0, 60_000),
        st.integers(0, 1_000_000),
    ),
    st.integers(0, 2_000_000),
)
def test_a_delay_is_never_negative_never_over_the_cap_and_never_beyond_the_budget(
    endings: list[Ending], policy: RestartPolicy, now: int
) -> None:
    endings = [*endings, Ending.HOST_GONE]
    run = run_with(*(failed(number, at=1, ending=ending) for number, ending in enumerate(endings, 1)), policy=policy)
    delay = restart_delay_ms(run, now)
    used = sum(1 for ending in endings if ending in RESTARTS)
    assert restarts_used(run) == used
    if delay is not None:
        assert 0 <= delay <= policy.max_backoff_ms
        assert used <= policy.max_attempts
        assert max(0, now - 1) + delay <= policy.max_elapsed_ms
    elif used <= policy.max_attempts:
        assert max(0, now - 1) + policy.max_backoff_ms > policy.max_elapsed_ms
