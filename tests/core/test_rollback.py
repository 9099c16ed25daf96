"""A run that is undone leaves its thread as it was: whatever it stored, in whatever order, compacted or not."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.build import at, blob, checkpoint, key, projection, spec, thread, write, writes
from tests.core.store_histories import histories

from agentvisor.core import shed
from agentvisor.core.applying import apply
from agentvisor.core.attempts import Close, Source
from agentvisor.core.delta import histories as delta_histories
from agentvisor.core.effects import By, Effect, EffectState, Place
from agentvisor.core.errors import Conflict, NotFound
from agentvisor.core.ids import ROOT, CheckpointId, RunId
from agentvisor.core.interrupts import Interrupt, Report
from agentvisor.core.questions import Ask, Question
from agentvisor.core.records import Checkpoint, DeleteForRuns, Operation, Prune, PutBlobs, Write
from agentvisor.core.rollback import Before
from agentvisor.core.runs import CancelAction, Ending, Multitask, RunKind, RunStatus
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.protocol.convert import struct_to_bytes
from agentvisor.protocol.metadata import metadata_to_struct
from agentvisor.protocol.rollback import before_from_message, before_to_message
from agentvisor.protocol.stores import store_from_message, store_to_message
from agentvisor.protocol.threads import thread_from_message, thread_to_message
from agentvisor.protocol.v1 import thread_pb2

RUN = RunId("r")


def cut_at(operations: list[Operation], share: float) -> int:
    """Where the run begins: not between a checkpoint and the values that came for it."""
    cut = int(len(operations) * share)
    while cut and isinstance(operations[cut - 1], PutBlobs):
        cut -= 1
    return cut


def after(operations: Iterable[Operation], keep: int = 0) -> Store:
    store = Store(keep=keep)
    for one in operations:
        apply(store, one)
    store.drop_unreferenced_blobs()
    return store


def contents(store: Store) -> dict[str, list[str]]:
    """The records that a compaction would carry, without the order in which they came."""
    message = store_to_message(store, store.all_checkpoints(), blobs=True)
    return {
        field.name: sorted(str(one) for one in getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if field.name in ("checkpoints", "orphans", "projections", "bones", "effects")
    }


def missing_values(store: Store) -> set[bytes]:
    return {key for one in store.all_checkpoints() for key in one.channels.values() if key} - set(store.blobs)


@settings(max_examples=150, deadline=None)
@given(operations=histories(most=40, deletes=False), share=st.floats(0, 1), compacted=st.booleans())
def test_undone_it_is_as_before(operations: list[Operation], share: float, *, compacted: bool) -> None:
    cut = cut_at(operations, share)
    expected = contents(after(operations[:cut]))
    store = after(operations[:cut])
    before = Before.of(RUN, store)
    for number, one in enumerate(operations[cut:]):
        before.note(store, one)
        apply(store, one)
        if compacted and number % 5 == 0:
            named = before_to_message(before, store)
            store = store_from_message(store_to_message(store, store.all_checkpoints(), blobs=True))
            before = before_from_message(named, store)
    assert before.why_not(store) == ""
    before.restore(store)
    assert contents(store) == expected
    assert set(store.references) == set(store.blobs)  # nothing is missing, and nothing is left that nobody needs
    assert store.heads == after(operations[:cut]).heads


@settings(max_examples=150, deadline=None)
@given(histories(most=40, keep=3, deletes=False), st.floats(0, 1))
def test_with_a_small_history_it_is_undone_to_the_same_heads_or_not_at_all(
    operations: list[Operation], share: float
) -> None:
    cut = cut_at(operations, share)
    stood = after(operations[:cut], keep=3)
    store = after(operations[:cut], keep=3)
    before = Before.of(RUN, store)
    for one in operations[cut:]:
        before.note(store, one)
        apply(store, one)
    if before.why_not(store):
        assert store.heads != stood.heads
        return
    before.restore(store)
    for namespace, head in stood.heads.items():
        if namespace in before.heads:
            found, then = store.get(namespace), stood.get(namespace)
            assert found == then
            assert found is not None
            held = found.checkpoint.channels
            channels = tuple(name for name in found.checkpoint.delta_channels if name in held and held[name] is None)
            made_of = [delta_histories(one, namespace, head, channels) for one in (store, stood)]
            assert made_of[0] == made_of[1]
    # A checkpoint that is put again after it was reclaimed comes without its values here: those missed before, too.
    assert missing_values(store) <= missing_values(stood)


# --- what belongs to no checkpoint -----------------------------------------------------------------------------------


def begun(*operations: Operation) -> Thread:
    """A thread that holds this, and on which a run has begun."""
    one = thread()
    for operation in operations:
        apply(one.store, operation)
    one.begin_attempt(one.accept_run(spec("r"), 1), 2)
    return one


def write_to(one: Thread, *operations: Operation) -> None:
    one.apply(list(operations), Source("h", 1, 3), 3)


def undo(one: Thread) -> None:
    one.request_cancel(RUN, 4, CancelAction.ROLLBACK)
    one.close_attempt(Close(Ending.CANCELLED), 5)
    assert RUN not in one.runs


def effect(name: str, *, number: int | None, state: EffectState = EffectState.DONE) -> Effect:
    where = CheckpointId(f"{number:04}") if number is not None else None
    return Effect(Place(f"task {name}" if number is not None else "", name, ROOT, where), state, By("r", 1, 1))


def test_an_effect_that_has_happened_is_never_undone() -> None:
    one = begun(checkpoint(1), effect("of the task that waits", number=1))
    write_to(one, effect("of the thread", number=None), checkpoint(2), effect("of a task that is gone", number=2))
    assert [each.place.key for each in one.store.effects] == ["of the thread", "of a task that is gone"]
    undo(one)
    # The task under the first checkpoint may run again, and must find what it has done.
    assert {each.place.key for each in one.store.effects} == {"of the task that waits", "of the thread"}


def test_what_waited_for_an_answer_waits_again() -> None:
    question = Question("q", "name", "kind", b"1", 1)
    one = begun(checkpoint(1), Ask(question, b"input"), Report((Interrupt("i", "kind", b"1"),), takes_input=True))
    asked = one.store.questions.asked
    assert asked == {}  # new input begins anew
    write_to(one, Report((), takes_input=True), checkpoint(2))
    undo(one)
    assert list(one.store.questions.asked) == ["q"]
    assert list(one.store.interrupts.reported) == ["i"]
    assert one.store.questions.input == b"input"


def test_an_answer_under_the_checkpoint_it_stood_on_is_taken_back_with_its_value() -> None:
    old = blob("old")
    one = begun(PutBlobs((old,)), checkpoint(1), writes(1, replace_key(write(-4, "", "c"), "old")))
    assert one.store.blobs.keys() == {old.key}
    write_to(one, PutBlobs((blob("new"),)), writes(1, replace_key(write(-4, "", "c"), "new"), write(0, "more")))
    one = thread_from_message(thread_pb2.Thread.FromString(thread_to_message(one).SerializeToString()))
    write_to(one, projection(1, "elsewhere"))
    assert one.store.blobs.keys() == {old.key, key("new")}
    undo(one)
    [task] = one.store.pending(at(1))
    assert [(each.idx, each.key) for each in task.writes] == [(-4, old.key)]
    assert one.store.blobs.keys() == {old.key}
    assert one.store.projections == {}


def replace_key(one: Write, name: str) -> Write:
    return replace(one, data=b"", key=key(name))


def test_the_thread_forgets_how_to_undo_a_run_that_has_ended() -> None:
    one = begun(checkpoint(1), writes(1, write(-4, "before")))
    write_to(one, writes(1, write(-4, "after")))
    one.close_attempt(Close(Ending.COMPLETED), 5)
    assert one.before is None
    assert thread_to_message(one).HasField("before") is False


def test_a_run_that_has_deleted_checkpoints_itself_cannot_be_undone() -> None:
    one = begun(checkpoint(1))
    write_to(one, checkpoint(2), Prune(keep_latest=True))
    with pytest.raises(Conflict, match=r"cannot be rolled back: it has deleted checkpoints.*use action 'interrupt'"):
        one.request_cancel(RUN, 4, CancelAction.ROLLBACK)
    with pytest.raises(Conflict, match="use multitask_strategy 'interrupt'"):
        one.accept_run(spec("new", multitask=Multitask.ROLLBACK), 4)
    one.request_cancel(RUN, 4)
    one.close_attempt(Close(Ending.CANCELLED), 5)
    assert one.runs[RUN].status is RunStatus.INTERRUPTED


@pytest.mark.parametrize("restarts", [False, True], ids=["in its first attempt", "in another attempt"])
def test_a_run_is_undone_although_the_one_that_it_goes_on_from_was_deleted_meanwhile(restarts: bool) -> None:  # noqa: FBT001
    one = thread()
    one.begin_attempt(one.accept_run(spec("first"), 1), 1)
    write_to(one, replace(checkpoint(1), run_id="first"), projection(1, "next"), writes(1, write(-4, "before")))
    one.close_attempt(Close(Ending.COMPLETED), 2)
    run = one.accept_run(spec("r"), 2)
    one.begin_attempt(run, 2)
    own = replace(checkpoint(2), run_id="r")
    write_to(one, writes(1, write(-4, "after")), projection(1, "elsewhere"), own)
    one.request_cancel(RunId("first"), 3, CancelAction.DELETE)
    if restarts:
        one.close_attempt(Close(Ending.GUEST_GONE), 3)
        one.begin_attempt(run, 3)
    undo(one)
    assert one.runs == {}
    assert contents(one.store) == contents(Store())


def saying(one: Checkpoint, run_id: str) -> Checkpoint:
    """With a run in its metadata, as what puts it has it."""
    return replace(one, run_id=run_id, metadata=struct_to_bytes(metadata_to_struct({"run_id": run_id})))


def ended_run(one: Thread, name: str, *operations: Operation, base: int = 0) -> None:
    one.begin_attempt(one.accept_run(spec(name), base + 1), base + 1)
    write_to(one, *operations)
    one.close_attempt(Close(Ending.COMPLETED), base + 2)


def kept(one: Thread) -> list[str]:
    return sorted(each.checkpoint_id for each in one.store.all_checkpoints())


@pytest.mark.parametrize("compacted", [False, True], ids=["", "compacted"])
@pytest.mark.parametrize("says", ["", "first", "third", "unknown"])
def test_a_deleted_run_takes_its_checkpoints_along_whatever_their_metadata_says(
    says: str,
    compacted: bool,  # noqa: FBT001
) -> None:
    one = thread()
    ended_run(one, "first", saying(checkpoint(1), "first"))
    # Nothing at all, the run before, the run after: and what a guest claims of made_by is no better.
    ended_run(one, "second", replace(saying(checkpoint(2), says), made_by="first"), base=10)
    ended_run(one, "third", saying(checkpoint(3), "third"), base=20)
    if compacted:
        one = thread_from_message(thread_pb2.Thread.FromString(encoded(one)))
    one.request_cancel(RunId("first"), 40, CancelAction.DELETE)
    assert kept(one) == ["0002", "0003"]
    one.request_cancel(RunId("third"), 41, CancelAction.DELETE)
    assert kept(one) == ["0002"]
    one.request_cancel(RunId("second"), 42, CancelAction.DELETE)
    assert kept(one) == []


def test_a_checkpoint_that_a_later_run_puts_again_is_of_the_run_that_has_made_it() -> None:
    one = thread()
    ended_run(one, "first", saying(checkpoint(1), "first"))
    ended_run(one, "second", saying(checkpoint(1), "second"), base=10)
    one.request_cancel(RunId("second"), 40, CancelAction.DELETE)
    assert kept(one) == ["0001"]
    one.request_cancel(RunId("first"), 41, CancelAction.DELETE)
    assert kept(one) == []


def test_a_client_outside_says_of_which_run_something_is_that_it_puts() -> None:
    """As LangGraph's savers: `delete_for_runs` goes by metadata."""
    one = thread()
    one.begin_attempt(one.accept_run(spec("session", kind=RunKind.SESSION), 1), 1)
    write_to(one, replace(saying(checkpoint(1), "of langgraph"), made_by="other"))
    one.close_attempt(Close(Ending.COMPLETED), 2)
    assert [each.maker for each in one.store.all_checkpoints()] == ["of langgraph"]
    apply(one.store, DeleteForRuns(frozenset({"of langgraph"})))
    assert kept(one) == []


def test_a_checkpoint_of_an_earlier_version_is_of_the_run_that_its_metadata_names() -> None:
    one = thread()
    ended_run(one, "first", saying(checkpoint(1), "first"))
    message = thread_to_message(one)
    assert [each.checkpoint.made_by for each in message.store.checkpoints] == [""], "it is said only where it differs"
    again = thread_from_message(message)
    again.request_cancel(RunId("first"), 40, CancelAction.DELETE)
    assert kept(again) == []


def test_a_run_of_an_earlier_version_cannot_be_undone() -> None:
    one = begun(checkpoint(1))
    one.before = None
    with pytest.raises(Conflict, match="noted nothing"):
        one.request_cancel(RUN, 4, CancelAction.ROLLBACK)


@pytest.mark.parametrize("kind", [RunKind.SESSION, RunKind.UPDATE])
@pytest.mark.parametrize("action", [CancelAction.ROLLBACK, CancelAction.DELETE])
def test_what_a_client_outside_writes_is_no_run_to_be_undone(kind: RunKind, action: CancelAction) -> None:
    one = thread()
    one.accept_run(spec("outside", kind=kind), 1)
    with pytest.raises(NotFound, match="it is unknown"):
        one.request_cancel(RunId("outside"), 2, action)
    one.request_cancel(RunId("outside"), 2)


def test_thread_status_and_other_runs_are_as_before() -> None:
    one = begun(checkpoint(1))
    one.close_attempt(Close(Ending.AGENT_ERROR, "ValueError", "boom"), 3)
    one.begin_attempt(one.accept_run(spec("second"), 4), 5)
    write_to(one, checkpoint(2))
    one.accept_run(spec("third", multitask=Multitask.ROLLBACK), 6)
    assert one.status is ThreadStatus.BUSY
    one.request_cancel(RunId("third"), 7, CancelAction.ROLLBACK)
    assert (one.status, list(one.runs)) == (ThreadStatus.BUSY, ["r", "second"])  # until the attempt is over
    one.close_attempt(Close(Ending.COMPLETED), 8)
    assert (one.status, list(one.runs)) == (ThreadStatus.ERROR, ["r"])
    assert [each.checkpoint_id for each in one.store.all_checkpoints()] == ["0001"]


def test_what_it_takes_to_undo_a_run_is_left_out_first_of_all_and_no_guest_is_disturbed() -> None:
    one = begun(checkpoint(1), *(writes(1, write(-4, "x" * 4_000), task=f"t{number}") for number in range(5)))
    write_to(one, *(writes(1, write(-4, "y"), task=f"t{number}") for number in range(5)))
    whole = len(encoded(one))
    shedding = shed.until_it_fits(one, lambda: encoded(one), whole - 10_000, 4)
    assert shedding.state is not None
    assert one.active is not None
    with pytest.raises(Conflict, match="had to be left out"):
        one.request_cancel(RUN, 5, CancelAction.ROLLBACK)


def encoded(one: Thread) -> bytes:
    return thread_to_message(one).SerializeToString()
