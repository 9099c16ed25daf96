"""A reader of a run's events sees each once and in order, or is told that some are gone."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentvisor.core.ids import RunId, ThreadId
from agentvisor.host.streams import ALL, METADATA, Event, Gap, RunStreams, StreamLimits, TapeId

THREAD = ThreadId("thread")
RUN, OTHER = TapeId(THREAD, RunId("run")), TapeId(THREAD, RunId("other"))


def streams(**limits: int) -> RunStreams:
    return RunStreams(StreamLimits(**limits), clock=lambda: 0.000_001)


def publish(streams: RunStreams, *texts: str, run: TapeId = RUN, attempt: int = 1) -> None:
    for text in texts:
        streams.publish(run, attempt, "custom", [], text.encode())


async def read(events: AsyncIterator[Event | Gap]) -> list[str]:
    return [one.data.decode() if isinstance(one, Event) else "gap" async for one in events]


async def test_a_reader_gets_what_was_and_what_comes_and_ends_with_the_run() -> None:
    subject = streams()
    publish(subject, "a", "b")
    reading = asyncio.create_task(read(subject.subscribe(RUN, None)))
    await asyncio.sleep(0)
    publish(subject, "c")
    await asyncio.sleep(0)
    publish(subject, "d")
    subject.close(RUN)
    assert await reading == ["a", "b", "c", "d"]


async def test_readers_do_not_take_events_from_each_other() -> None:
    subject = streams()
    subject.open(RUN)
    readings = [asyncio.create_task(read(subject.subscribe(RUN, None))) for _ in range(3)]
    await asyncio.sleep(0)
    publish(subject, *"abc")
    subject.close(RUN)
    assert await asyncio.gather(*readings) == [["a", "b", "c"]] * 3


@given(st.integers(0, 49))
async def test_a_reader_goes_on_after_any_event_that_it_saw(seen: int) -> None:
    subject = streams()
    publish(subject, *map(str, range(50)))
    subject.close(RUN)
    events = [one async for one in subject.subscribe(RUN, ALL) if isinstance(one, Event)]
    ids = [one.id for one in events]
    assert ids == sorted(set(ids))
    assert await read(subject.subscribe(RUN, ids[seen])) == [str(number) for number in range(seen + 1, 50)]


async def test_what_fell_off_the_tape_is_a_gap() -> None:
    subject = streams(events=3)
    publish(subject, "a")
    [first] = [one async for one in ended(subject).subscribe(RUN, None) if isinstance(one, Event)]
    subject = streams(events=3)
    publish(subject, *"abcdef")
    subject.close(RUN)
    assert await read(subject.subscribe(RUN, first.id)) == ["gap", "d", "e", "f"]
    assert await read(subject.subscribe(RUN, None)) == ["d", "e", "f"]


def ended(subject: RunStreams) -> RunStreams:
    subject.close(RUN)
    return subject


async def test_a_slow_reader_is_told_what_it_missed() -> None:
    subject = streams(events=2)
    publish(subject, "a")
    events = aiter(subject.subscribe(RUN, None))
    assert isinstance(await anext(events), Event)
    publish(subject, *"bcde")
    subject.close(RUN)
    assert await read(events) == ["gap", "d", "e"]


async def test_numbers_of_another_host_are_a_gap_and_later_hosts_count_from_higher() -> None:
    earlier, later = RunStreams(clock=lambda: 1000.0), RunStreams(clock=lambda: 1001.0)
    publish(earlier, "a")
    publish(later, "b")
    later.close(RUN)
    event = await anext(aiter(earlier.subscribe(RUN, None)))
    assert isinstance(event, Event)
    assert await read(later.subscribe(RUN, event.id)) == ["gap", "b"]
    assert await read(later.subscribe(RUN, 10**18)) == ["gap", "b"]


async def test_each_attempt_says_once_that_it_begins() -> None:
    subject = streams()
    for attempt in (1, 1, 2):
        subject.attempt_started(RUN, attempt)
    subject.close(RUN)
    events = [one async for one in subject.subscribe(RUN, None) if isinstance(one, Event)]
    assert [(one.mode, one.data) for one in events] == [
        (METADATA, b'{"run_id":"run","attempt":1}'),
        (METADATA, b'{"run_id":"run","attempt":2}'),
    ]


async def test_an_attempt_that_lost_its_run_is_not_heard() -> None:
    subject = streams()
    subject.attempt_started(RUN, 2)
    assert (subject.heard(RUN), subject.heard(OTHER)) == (2, 0)
    publish(subject, "late", attempt=1)
    publish(subject, "mine", attempt=2)
    subject.close(RUN)
    publish(subject, "later", attempt=2)
    assert await read(subject.subscribe(RUN, None)) == ['{"run_id":"run","attempt":2}', "mine"]


async def test_memory_is_bounded_and_ended_runs_go_first() -> None:
    subject = streams(total_bytes=3000)
    publish(subject, "ended", run=OTHER)
    subject.close(OTHER)
    publish(subject, *("x" * 300 for _ in range(20)))
    assert subject._bytes <= 3000
    assert await read(subject.subscribe(OTHER, None)) == []
    subject.close(RUN)
    assert await read(subject.subscribe(RUN, None)) == ["x" * 300] * 6


async def test_what_was_quiet_for_longest_goes_before_what_is_live() -> None:
    subject = streams(total_bytes=3000)
    publish(subject, *("x" * 300 for _ in range(4)), run=OTHER)
    publish(subject, *("y" * 300 for _ in range(4)))
    subject.close(RUN)
    subject.close(OTHER)
    assert len(await read(subject.subscribe(RUN, None))) == 4
    assert len(await read(subject.subscribe(OTHER, None))) == 2


async def test_one_event_over_every_limit_is_dropped_and_shows_as_a_gap() -> None:
    subject = streams(bytes=1000)
    publish(subject, "a")
    events = aiter(subject.subscribe(RUN, None))
    await anext(events)
    publish(subject, "x" * 2000)
    subject.close(RUN)
    assert await read(events) == ["gap"]


@pytest.mark.parametrize("field", ["ended_runs", "runs"])
def test_runs_without_events_do_not_pile_up(field: str) -> None:
    subject = streams(**{field: 5})
    for number in range(100):
        subject.open(TapeId(THREAD, RunId(str(number))))
        if field == "ended_runs":
            subject.close(TapeId(THREAD, RunId(str(number))))
    assert len(subject._tapes) == 5


async def test_a_reader_of_a_forgotten_run_ends() -> None:
    subject = streams()
    subject.open(RUN)
    reading = asyncio.create_task(read(subject.subscribe(RUN, None)))
    await asyncio.sleep(0)
    subject.forget(RUN)
    assert await reading == []


async def numbers(subject: RunStreams, after: int | None = None) -> list[int | str]:
    return [one.id if isinstance(one, Event) else "gap" async for one in subject.subscribe(RUN, after)]


async def copied(source: RunStreams, into: RunStreams, after: int | None = None) -> None:
    async for one in source.subscribe(RUN, after):
        into.take(RUN, one)


async def test_a_copy_has_the_same_numbers_and_takes_nothing_twice() -> None:
    source, copy = streams(), streams()
    source.attempt_started(RUN, 1, 1_000)
    publish(source, *"abc")
    source.close(RUN)
    copy.follow(RUN)
    await copied(source, copy)
    await copied(source, copy)
    copy.close(RUN)
    assert await numbers(copy) == await numbers(source) == [1_000_001, 1_000_002, 1_000_003, 1_000_004]


async def test_an_attempt_elsewhere_goes_on_in_number_where_it_took_over() -> None:
    first, second = streams(), streams()
    first.attempt_started(RUN, 1, 1_000)
    publish(first, *"ab")
    second.attempt_started(RUN, 2, 2_000, takes_over=True)
    publish(second, "c", attempt=2)
    first.superseded(RUN, 2)
    publish(first, "late", attempt=1)
    first.close(RUN)
    await copied(first, second)
    second.taken_over(RUN, whole=True)
    publish(second, "d", attempt=2)
    second.close(RUN)
    assert await read(second.subscribe(RUN, None)) == [
        '{"run_id":"run","attempt":1}', "a", "b", '{"run_id":"run","attempt":2}', "c", "d",
    ]  # fmt: skip
    found = await numbers(second)
    assert found == list(range(1_000_001, 1_000_007))
    assert await numbers(second, 1_000_003) == found[3:]


async def test_an_attempt_that_could_not_take_over_counts_from_higher_and_says_that_something_is_missing() -> None:
    alone = streams()
    alone.attempt_started(RUN, 2, 2_000, takes_over=True)
    publish(alone, "c", attempt=2)
    alone.taken_over(RUN, whole=False)
    alone.close(RUN)
    # Who has seen something of the attempt before has missed something; who has seen nothing begins here.
    assert await numbers(alone, 1_000_003) == ["gap", 2_000_001, 2_000_002]
    assert await numbers(alone) == [2_000_001, 2_000_002]
    # The gap has a number of its own: who was told of it is not told again.
    assert await numbers(alone, 2_000_000) == [2_000_001, 2_000_002]


async def test_who_is_ahead_of_a_copy_waits_until_it_has_come() -> None:
    source, copy = streams(), streams()
    source.attempt_started(RUN, 1, 1_000)
    publish(source, *"abc")
    source.close(RUN)
    copy.follow(RUN)
    reading = asyncio.create_task(numbers(copy, 1_000_003))
    await asyncio.sleep(0)
    await copied(source, copy)
    copy.close(RUN)
    assert await reading == [1_000_004]


async def test_what_a_lost_host_had_is_a_gap_at_the_end() -> None:
    copy = streams()
    copy.follow(RUN)
    copy.take(RUN, Event(7, 1, "custom", (), b"a"))
    copy.lost(RUN)
    copy.close(RUN)
    assert await read(copy.subscribe(RUN, None)) == ["a", "gap"]
    assert await read(copy.subscribe(RUN, 7)) == ["gap"]


async def test_events_that_wait_too_long_for_their_numbers_are_not_held_without_a_bound() -> None:
    subject = streams(events=3)
    subject.attempt_started(RUN, 2, 2_000, takes_over=True)
    publish(subject, *"abcdef", attempt=2)
    subject.close(RUN)
    assert await read(subject.subscribe(RUN, None)) == ["d", "e", "f"]


async def test_an_imported_run_of_the_same_id_neither_reads_nor_ends_the_events_of_the_other() -> None:
    subject, imported = streams(), TapeId(ThreadId("imported"), RUN.run_id)
    publish(subject, "a")
    subject.follow(imported)
    subject.close(imported)
    assert await read(subject.subscribe(imported, ALL)) == []
    publish(subject, "b")
    subject.close(RUN)
    assert await read(subject.subscribe(RUN, ALL)) == ["a", "b"]
