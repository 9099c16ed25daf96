"""Numbers grow along a tape, from a run to the next, and are exact in JavaScript."""

from datetime import UTC, datetime

from agentvisor.host.http.events import numbers
from agentvisor.host.http.events.numbers import Numbers


def test_a_place_has_room_for_what_it_becomes_before_the_next() -> None:
    assert numbers.of_place(numbers.EPOCH_US + 8) - numbers.of_place(numbers.EPOCH_US + 7) == numbers.ROOM


def test_a_run_that_begins_a_millisecond_after_another_ended_is_numbered_above_it() -> None:
    ended_ms = 1_796_056_087_159
    assert numbers.of_end(ended_ms) < numbers.after_end(ended_ms) < numbers.of_place((ended_ms + 1) * 1000)


def test_numbers_are_exact_in_javascript_until_2042() -> None:
    assert numbers.of_place(int(datetime(2042, 1, 1, tzinfo=UTC).timestamp() * 1_000_000)) < 2**53


def test_no_number_is_given_out_twice_however_much_a_place_becomes() -> None:
    given = Numbers()
    found = [given.next(numbers.of_place(numbers.EPOCH_US + at // 40)) for at in range(200)]
    assert found == sorted(set(found))


def test_what_was_passed_by_is_not_given_out() -> None:
    given = Numbers()
    given.pass_by(100)
    assert (given.next(50), given.next(500)) == (101, 500)
