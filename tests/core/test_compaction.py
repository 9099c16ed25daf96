"""When an execution continues as new: each measure alone, half of it between runs."""

from dataclasses import replace

import pytest

from agentvisor.core.compaction import SIGNALS, UPDATES, Usage, is_due
from agentvisor.core.thread import Settings

NOTHING = Usage(events=100, history_bytes=0, signals=0, updates=0)
SETTINGS = Settings(compact_events=1_000, compact_bytes=50_000)
HARD = {"events": 1_000, "history_bytes": 50_000, "signals": SIGNALS, "updates": UPDATES}


@pytest.mark.parametrize("measure, limit", HARD.items())
def test_under_a_live_attempt_a_measure_counts_in_full(measure: str, limit: int) -> None:
    assert is_due(replace(NOTHING, **{measure: limit}), SETTINGS, is_idle=False)
    assert not is_due(replace(NOTHING, **{measure: limit - 1}), SETTINGS, is_idle=False)


@pytest.mark.parametrize("measure, limit", HARD.items())
def test_between_runs_half_is_enough(measure: str, limit: int) -> None:
    assert is_due(replace(NOTHING, **{measure: limit // 2}), SETTINGS, is_idle=True)
    assert not is_due(replace(NOTHING, **{measure: limit // 2 - 1}), SETTINGS, is_idle=True)


def test_settings_may_lower_the_numbers_of_signals_and_updates() -> None:
    settings = replace(SETTINGS, compact_signals=10, compact_updates=5)
    assert is_due(replace(NOTHING, signals=10), settings, is_idle=False)
    assert is_due(replace(NOTHING, updates=5), settings, is_idle=False)


@pytest.mark.parametrize("is_idle", [True, False])
def test_what_temporal_suggests_is_done(is_idle: bool) -> None:  # noqa: FBT001 - a parameter
    assert is_due(replace(NOTHING, suggested=True), SETTINGS, is_idle=is_idle)


def test_an_execution_that_has_just_begun_goes_on_however_large_its_state_is() -> None:
    assert not is_due(Usage(19, 10**9, 10**6, 10**6, suggested=True), SETTINGS, is_idle=True)


def test_temporals_own_limits_are_far() -> None:
    assert SIGNALS < 10_000
    assert UPDATES < 2_000
