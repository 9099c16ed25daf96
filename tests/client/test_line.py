"""Small differences are summed up: a value that grows is whole once, and never deep."""

from hypothesis import given
from hypothesis import strategies as st

from agentvisor.client.line import WIDTH, Line
from agentvisor.protocol.blobs import Limits, Stored


def value(number: int) -> Stored:
    return Stored(number.to_bytes(32), "msgpack", b"v%d" % number, 0, 0, 0, 0)


def grown(steps: int, size: int = 700) -> tuple[Line, int]:
    """A line that grew by `size` bytes at each step, and the bytes stored for it."""
    line, total, at = Line.of([value(0)], []), 0, {value(0).key: 0}
    for number in range(1, steps + 1):
        difference = (number - at[line.base().key]) * size
        total += difference
        at[value(number).key] = number
        line = line.extended(value(number), difference)
    return line, total


def test_a_growing_value_costs_a_few_times_what_was_added_and_stays_shallow() -> None:
    for steps, most in ((20, 1), (100, 2), (1000, 3.5), (5000, 5)):
        line, total = grown(steps)
        assert total <= most * steps * 700
        assert len(line.steps) <= Limits().patch_chain


def test_few_values_are_held_in_memory() -> None:
    line, _ = grown(3000)
    assert len(line.held) <= 5
    assert line.last == value(3000)


@given(st.lists(st.sampled_from([0, 1, 300, 5000, 70_000, 2_000_000]), max_size=200))
def test_the_next_process_goes_on_as_this_one_would(sizes: list[int]) -> None:
    line, all_values = Line.of([value(0)], []), [value(0)]
    for number, size in enumerate(sizes, start=1):
        line = line.extended(value(number), size)
        start = len(line.steps) - 1
        all_values[start + 1 :] = [value(number)]
    reloaded = Line.of(all_values, list(line.steps))
    assert reloaded == line
    assert reloaded.base() == line.base()
    assert line.last == value(len(sizes))


def test_a_long_chain_of_another_writer_is_summed_up() -> None:
    way = [value(number) for number in range(3 * WIDTH)]
    line = Line.of(way, [100] * (len(way) - 1))
    assert line.base() == value(0)
