"""The write-ahead log: numbered without gaps, cut into bounded stretches; and what is new in what arrives."""

from hypothesis import given
from hypothesis import strategies as st

from agentvisor.core.journal import ENTRY_OVERHEAD, Stretch, WriteAheadLog, arrival

ENTRIES = st.lists(st.binary(max_size=40), max_size=30)


def log_of(entries: list[bytes], trimmed: int = 0) -> WriteAheadLog:
    log = WriteAheadLog()
    for entry in entries:
        log.append(entry)
    log.trim(trimmed)
    return log


@given(ENTRIES, st.integers(0, 40))
def test_a_trimmed_log_keeps_its_numbers_and_its_size(entries: list[bytes], trimmed: int) -> None:
    log = log_of(entries, trimmed)
    kept = entries[trimmed:]
    assert log.all() == Stretch(min(trimmed, len(entries)) + 1, tuple(kept))
    assert log.last_seq == len(entries)
    assert log.size == sum(len(entry) + ENTRY_OVERHEAD for entry in kept)
    assert log.append(b"next") == len(entries) + 1


@given(ENTRIES, st.integers(0, 40), st.integers(0, 40), st.integers(1, 200))
def test_stretches_are_the_log_in_order_each_within_the_limit_or_of_one_entry(
    entries: list[bytes], trimmed: int, up_to: int, limit: int
) -> None:
    log = log_of(entries, trimmed)
    found = list(log.stretches(up_to, limit))
    assert [entry for one in found for entry in one.entries] == entries[trimmed:up_to]
    expected = log.first_seq
    for one in found:
        assert one.first_seq == expected
        assert one.entries
        assert len(one.entries) == 1 or sum(len(entry) + ENTRY_OVERHEAD for entry in one.entries) <= limit
        expected = one.last_seq + 1


@given(ENTRIES, st.integers(1, 100), st.integers(0, 30), st.integers(0, 30))
def test_the_first_stretch_of_a_log_that_grew_or_was_trimmed_never_ends_earlier(
    entries: list[bytes], limit: int, trimmed: int, grown: int
) -> None:
    # A heartbeat carries the first stretch and replaces the one before: it must not take back what that one held.
    log = log_of(entries)
    before = next(log.stretches(log.last_seq, limit), Stretch(log.first_seq, ()))
    log.trim(min(trimmed, log.last_seq))
    for _ in range(grown):
        log.append(b"more")
    after = next(log.stretches(log.last_seq, limit), Stretch(log.first_seq, ()))
    assert after.last_seq >= before.last_seq


@given(ENTRIES, st.data())
def test_dedup_whatever_stretches_come_in_whatever_order_each_entry_is_applied_once_and_in_order(
    entries: list[bytes], data: st.DataObject
) -> None:
    """Any stretches whose predecessors had come when they were first sent; repeated, late and overlapping."""
    applied: list[bytes] = []
    sent: list[Stretch] = []
    reached = 0
    for _ in range(data.draw(st.integers(0, 12))):
        if sent and data.draw(st.booleans()):
            stretch = data.draw(st.sampled_from(sent))
        else:
            first = data.draw(st.integers(1, reached + 1))
            last = data.draw(st.integers(first - 1, len(entries)))
            stretch = Stretch(first, tuple(entries[first - 1 : last]))
            sent.append(stretch)
        came = arrival(len(applied), stretch)
        assert not came.gap
        assert came.first_seq == len(applied) + 1
        applied.extend(came.fresh)
        reached = max(reached, stretch.last_seq)
        assert applied == entries[:reached]


@given(ENTRIES.filter(bool), st.integers(0, 20), st.integers(2, 5))
def test_a_stretch_beyond_a_gap_brings_nothing(entries: list[bytes], applied: int, distance: int) -> None:
    came = arrival(applied, Stretch(applied + distance, tuple(entries)))
    assert came.gap
    assert came.fresh == ()


@given(st.integers(0, 20), st.integers(1, 40))
def test_an_empty_stretch_is_never_a_gap(applied: int, first: int) -> None:
    # A heartbeat whose log was folded: its folds may not have been taken in yet by whoever reads it.
    came = arrival(applied, Stretch(first, ()))
    assert not came.gap
    assert came.fresh == ()
