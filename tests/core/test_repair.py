"""Whatever a history lacks, what is made of it is one that providers accept, and nothing that counts is lost."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agentvisor.core.repair import Answer, Calls, Entry, Kept, Missing, Other, Placed, is_whole, repaired

IDS = st.sampled_from("abc")
"""Few, so that they repeat: some models give the same ids in every message."""
ENTRIES: st.SearchStrategy[Entry] = st.one_of(
    st.lists(IDS, min_size=1, max_size=3, unique=True).map(lambda ids: Calls(tuple(ids))),
    st.builds(Answer, IDS, st.booleans()),
    st.just(Other()),
)
HISTORIES = st.lists(ENTRIES, max_size=12)


def after(history: Sequence[Entry], placed: Sequence[Placed]) -> list[Entry]:
    """The repaired history, as entries again."""
    made: list[Entry] = []
    for one in placed:
        if isinstance(one, Kept):
            made.append(history[one.index])
        else:
            asking = history[one.index]
            assert isinstance(asking, Calls)
            made.append(Answer(asking.ids[one.call], stands_in=True))
    return made


def is_accepted(history: Sequence[Entry]) -> bool:
    """What a provider checks, in one pass."""
    waiting: set[str] = set()
    for entry in history:
        if isinstance(entry, Answer):
            if entry.call_id not in waiting:
                return False
            waiting.remove(entry.call_id)
        elif waiting:
            return False
        elif isinstance(entry, Calls):
            waiting = set(entry.ids)
    return not waiting


@given(HISTORIES)
def test_every_history_becomes_one_that_is_accepted(history: list[Entry]) -> None:
    assert is_accepted(after(history, repaired(history)))


@given(HISTORIES)
def test_what_is_accepted_is_left_alone(history: list[Entry]) -> None:
    assert is_whole(history) == is_accepted(history)


@given(HISTORIES)
def test_repairing_twice_changes_nothing(history: list[Entry]) -> None:
    assert is_whole(after(history, repaired(history)))


@given(HISTORIES)
def test_all_that_is_no_answer_stays_in_order_and_no_answer_stands_twice(history: list[Entry]) -> None:
    kept = [one.index for one in repaired(history) if isinstance(one, Kept)]
    others = [index for index, entry in enumerate(history) if not isinstance(entry, Answer)]
    assert [index for index in kept if index in set(others)] == others
    assert len(kept) == len(set(kept))


@given(HISTORIES)
def test_a_call_that_a_tool_answered_keeps_an_answer_of_a_tool(history: list[Entry]) -> None:
    made = after(history, repaired(history))
    for id_ in "abc":
        first = next((index for index, one in enumerate(history) if isinstance(one, Calls) and id_ in one.ids), None)
        if first is not None and Answer(id_) in history[first:]:
            assert Answer(id_) in made


def test_a_finished_sibling_keeps_its_answer_and_the_other_gets_one() -> None:
    # The message that the caller sent after the run was cancelled stands between.
    history = [Other(), Calls(("a", "b")), Other(), Answer("b")]
    assert repaired(history) == [Kept(0), Kept(1), Kept(3), Missing(1, 0), Kept(2)]


def test_an_answer_to_no_call_and_a_second_answer_are_left_out() -> None:
    history = [Answer("a"), Calls(("a",)), Answer("a"), Answer("a"), Other()]
    assert repaired(history) == [Kept(1), Kept(2), Kept(4)]


def test_a_tools_answer_that_comes_late_takes_the_place_of_what_stood_in_for_it() -> None:
    history = [Calls(("a",)), Answer("a", stands_in=True), Other(), Answer("a")]
    assert repaired(history) == [Kept(0), Kept(3), Kept(2)]


def test_an_id_that_is_used_again_belongs_to_the_latest_message_that_waits() -> None:
    history = [Calls(("a",)), Other(), Calls(("a",)), Answer("a")]
    assert repaired(history) == [Kept(0), Missing(0, 0), Kept(1), Kept(2), Kept(3)]
