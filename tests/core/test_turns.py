"""Whose turn it is: in order of acceptance, delayed ones at their time; whatever has begun goes first."""

from dataclasses import replace

from tests.core.build import spec

from agentvisor.core.runs import Attempt, Run, RunStatus
from agentvisor.core.turns import next_due_ms, next_run


def run(name: str, *, at: int, after: int = 0, begun: bool = False) -> Run:
    attempts = [Attempt(1, scheduled_at_ms=at)] if begun else []
    return Run(replace(spec(name), after_ms=after), RunStatus.PENDING, at, at, attempts)


def turn(runs: list[Run], now: int) -> str | None:
    found = next_run(runs, now)
    return None if found is None else found.run_id


def test_others_pass_a_run_that_is_not_due_yet() -> None:
    runs = [run("later", at=0, after=100), run("now", at=10)]
    assert [turn(runs, now) for now in (10, 99, 500)] == ["now", "now", "now"]
    assert turn(runs[:1], 99) is None
    assert turn(runs[:1], 100) == "later"


def test_a_run_that_is_due_goes_before_those_that_came_later_than_that() -> None:
    runs = [run("first", at=0, after=100), run("second", at=10, after=20), run("third", at=200)]
    assert [turn(runs, now) for now in (29, 30, 200)] == ["third", "second", "second"]
    assert turn([runs[0], runs[2]], 200) == "first"


def test_what_has_begun_goes_on() -> None:
    runs = [run("due", at=0, after=1), run("begun", at=10, begun=True)]
    assert turn(runs, 50) == "begun"


def test_without_delays_the_order_is_that_of_acceptance_whatever_the_clock_says() -> None:
    assert turn([run("first", at=50), run("second", at=10)], 0) == "first"


def test_the_next_that_is_due_is_known_to_wait_for() -> None:
    runs = [run("later", at=0, after=100), run("sooner", at=10, after=20), run("now", at=0)]
    assert next_due_ms(runs) == 30
    assert next_due_ms([run("begun", at=0, after=5, begun=True), run("now", at=0)]) is None
    assert next_due_ms([replace(runs[0], status=RunStatus.INTERRUPTED)]) is None
