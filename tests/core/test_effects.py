"""The ledger of effects: what may follow what, for how long an entry is kept, and what is never forgotten."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.build import checkpoint

from agentvisor.core.applying import apply
from agentvisor.core.effects import MAX_ERROR, By, Effect, EffectState, ForgetEffect, Ledger, Place, intended, noted
from agentvisor.core.effects import done as was_done
from agentvisor.core.effects import failed as has_failed
from agentvisor.core.ids import ROOT, CheckpointId, Namespace
from agentvisor.core.records import DeleteForRuns, Prune
from agentvisor.core.store import Store
from agentvisor.core.weighing import stored_bytes, unsheddable_bytes
from agentvisor.protocol.convert import operation_from_bytes, operation_to_bytes
from agentvisor.protocol.stores import store_from_message, store_to_message

ME, OTHER = By("r1", 1, 10), By("r1", 2, 20)
PLAIN = Place("", "charge")


def in_task(number: int, *, namespace: str = "", root: int | None = None, key: str = "charge") -> Place:
    at, root_id = CheckpointId(f"{number:04}"), None if root is None else CheckpointId(f"{root:04}")
    return Place(f"{namespace}/task-{number}", key, Namespace(namespace), at, root_id)


def begun(place: Place = PLAIN, by: By = ME) -> Effect:
    effect = intended(None, place, by, again=False, answers=0)
    assert effect is not None
    return effect


def finished(place: Place = PLAIN, result: bytes = b"1") -> Effect:
    effect = was_done(begun(place), place, ME, result=result, unkept="", answers=0)
    assert effect is not None
    return effect


def broken(place: Place = PLAIN) -> Effect:
    effect = has_failed(begun(place), error_type="ValueError", error_message="no")
    assert effect is not None
    return effect


def names(store: Store) -> list[str]:
    return sorted(one.place.scope for one in store.effects)


# --- what may follow what --------------------------------------------------------------------------------------------


def test_what_may_have_happened_is_not_begun_again_unless_somebody_says_so() -> None:
    assert intended(begun(), PLAIN, OTHER, again=False, answers=0) is None
    again = intended(begun(), PLAIN, OTHER, again=True, answers=0)
    assert again is not None
    assert (again.state, again.by) == (EffectState.INTENDED, OTHER)


@pytest.mark.parametrize("again", [False, True])
def test_what_is_done_is_never_begun_again(again: bool) -> None:  # noqa: FBT001
    assert intended(finished(), PLAIN, OTHER, again=again, answers=0) is None


def test_what_has_failed_may_be_begun_again() -> None:
    effect = intended(broken(), PLAIN, OTHER, again=False, answers=0)
    assert effect is not None
    assert (effect.state, effect.error_type) == (EffectState.INTENDED, "")


def test_the_first_result_counts() -> None:
    assert was_done(finished(), PLAIN, ME, result=b"2", unkept="", answers=0) is None
    assert has_failed(finished(), error_type="E", error_message="") is None


def test_who_intended_it_stays_known_when_it_is_done() -> None:
    effect = was_done(begun(by=ME), PLAIN, OTHER, result=b"1", unkept="", answers=0)
    assert effect is not None
    assert effect.by == ME


def test_notes_are_of_what_may_have_happened() -> None:
    assert noted(finished(), asked=True) is None
    assert noted(None, asked=True) is None
    asked = noted(begun(), asked=True)
    assert asked is not None
    assert (asked.asked, asked.awaited) == (True, False)
    both = noted(asked, awaited=True)
    assert both is not None
    assert (both.asked, both.awaited) == (True, True)


def test_interrupts_that_were_used_up_are_never_given_back() -> None:
    again = intended(begun(), PLAIN, OTHER, again=True, answers=2)
    failure = has_failed(again, error_type="E", error_message="")
    third = intended(failure, PLAIN, OTHER, again=False, answers=0)
    assert third is not None
    assert third.answers == 2


@given(st.text(max_size=MAX_ERROR * 3), st.text(max_size=MAX_ERROR * 3), st.sampled_from(["failed", "unkept", "asked"]))
@pytest.mark.thorough
def test_how_it_ended_has_its_room_set_aside(kind: str, message: str, what: str) -> None:
    known = begun()
    match what:
        case "failed":
            after = has_failed(known, error_type=kind, error_message=message)
        case "unkept":
            after = was_done(known, PLAIN, ME, result=b"", unkept=message, answers=0)
        case _:
            after = noted(known, asked=True)
    assert after is not None
    assert after.stored_bytes <= known.stored_bytes


# --- how long --------------------------------------------------------------------------------------------------------


def test_an_effect_of_a_task_is_kept_until_its_checkpoint_is_superseded() -> None:
    store = Store(keep=0)
    apply(store, checkpoint(1))
    apply(store, finished(in_task(1)))
    apply(store, finished(PLAIN))
    apply(store, checkpoint(1))  # put again
    assert len(store.effects) == 2
    apply(store, checkpoint(2))
    assert names(store) == [""]


def test_a_checkpoint_of_another_namespace_supersedes_nothing_but_what_runs_under_it() -> None:
    store = Store(keep=0)
    apply(store, checkpoint(1))
    apply(store, finished(in_task(2, namespace="a:t", root=1)))
    apply(store, finished(in_task(2, namespace="b:t", root=1)))
    apply(store, finished(in_task(2, namespace="kept", root=1)))
    apply(store, finished(in_task(1)))
    apply(store, checkpoint(3, namespace="a:t"))
    assert names(store) == ["/task-1", "b:t/task-2", "kept/task-2"]
    apply(store, checkpoint(4))
    assert names(store) == ["kept/task-2"], "a subgraph that keeps its state may go on from there"
    apply(store, checkpoint(5, namespace="kept"))
    assert names(store) == []


def test_one_that_begins_from_an_old_checkpoint_is_kept_until_a_newer_one_is_put() -> None:
    store = Store(keep=0)
    for number in (1, 2):
        apply(store, checkpoint(number))
    apply(store, begun(in_task(1)))  # time travel
    assert len(store.effects) == 1
    apply(store, checkpoint(3))
    assert len(store.effects) == 0


@pytest.mark.parametrize("operation", [DeleteForRuns(frozenset({""})), Prune(keep_latest=False)])
def test_an_effect_goes_with_its_deleted_checkpoint(operation: DeleteForRuns | Prune) -> None:
    store = Store(keep=0)
    apply(store, checkpoint(1))
    apply(store, begun(in_task(1)))
    apply(store, begun(PLAIN))
    apply(store, operation)
    assert names(store) == [""]


def test_an_effect_that_was_forgotten_is_gone() -> None:
    store = Store()
    apply(store, finished())
    apply(store, ForgetEffect("", "charge"))
    apply(store, ForgetEffect("", "charge"))
    assert len(store.effects) == 0


# --- size and wire ---------------------------------------------------------------------------------------------------


def test_effects_are_never_left_out() -> None:
    store = Store()
    before, all_before = unsheddable_bytes(store), stored_bytes(store)
    apply(store, finished(result=b"x" * 1000))
    assert unsheddable_bytes(store) - before >= 1000
    assert stored_bytes(store) - all_before >= 1000


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
places = st.builds(
    Place, texts, texts, st.sampled_from([ROOT, Namespace("a:t")]), st.none() | st.just(CheckpointId("0001"))
)
effects = st.builds(
    Effect,
    places,
    st.sampled_from(EffectState),
    st.builds(By, texts, st.integers(0, 9), st.integers(0, 2**40)),
    result=st.binary(max_size=20),
    error_type=texts,
    error_message=texts,
    unkept=texts,
    asked=st.booleans(),
    awaited=st.booleans(),
    answers=st.integers(0, 9),
)


@given(effects)
def test_an_effect_comes_back_from_the_wire_as_it_was(effect: Effect) -> None:
    assert operation_from_bytes(operation_to_bytes(effect)) == effect


@given(st.lists(effects, max_size=6))
def test_a_compaction_carries_every_effect(several: list[Effect]) -> None:
    store = Store()
    for effect in several:
        apply(store, effect)
    carried = store_from_message(store_to_message(store, store.all_checkpoints(), blobs=True))
    assert list(carried.effects) == list(store.effects)


# --- a model ---------------------------------------------------------------------------------------------------------

Move = Callable[[Effect | None], Effect | None]
moves = st.sampled_from(
    [
        lambda known: intended(known, PLAIN, OTHER, again=False, answers=0),
        lambda known: intended(known, PLAIN, OTHER, again=True, answers=0),
        lambda known: was_done(known, PLAIN, OTHER, result=b"1", unkept="", answers=0),
        lambda known: was_done(known, PLAIN, OTHER, result=b"", unkept="no", answers=0),
        lambda known: has_failed(known, error_type="E", error_message="e"),
        lambda known: noted(known, asked=True),
    ]
)


@given(st.lists(moves, max_size=12), st.data())
def test_whatever_is_asked_for_what_is_done_stays_done_and_applying_twice_changes_nothing(
    asked: list[Move], data: st.DataObject
) -> None:
    ledger, log = Ledger(), list[Effect]()
    first: Effect | None = None
    for move in asked:
        changed = move(ledger.get("", "charge"))
        if changed is not None:
            log.append(changed)
            ledger.record(changed)
        now = ledger.get("", "charge")
        if first is not None:
            assert now == first
        elif now is not None and now.state is EffectState.DONE:
            first = now
    again = Ledger()
    cut = data.draw(st.integers(0, len(log)))
    for effect in (*log[:cut], *log):  # a log that came twice, in part
        again.record(effect)
    assert list(again) == list(ledger)
