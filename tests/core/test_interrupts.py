"""What waits for an answer: kept as it was told, carried by compactions, decided on before a run is accepted."""

from dataclasses import replace

import pytest
from tests.core.build import checkpoint, spec, thread

from agentvisor.core.answering import CHANGED
from agentvisor.core.applying import apply
from agentvisor.core.attempts import Close, Source
from agentvisor.core.deadlines import expire, next_deadline_ms, overdue
from agentvisor.core.errors import Conflict
from agentvisor.core.ids import RunId
from agentvisor.core.interrupts import Interrupt, Note, Report, Seen, StillWaiting, Terms, renewed
from agentvisor.core.records import Operation
from agentvisor.core.runs import Ending, RunKind, RunStatus
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.core.weighing import unsheddable_bytes
from agentvisor.protocol.convert import operation_from_bytes, operation_to_bytes
from agentvisor.protocol.interrupts import (
    interrupts_from_message,
    interrupts_to_message,
    seen_from_message,
    seen_to_message,
)
from agentvisor.protocol.stores import store_from_message, store_to_message

TERMS = Terms(b'{"type": "string"}', 1_000, b'"no"')
ONE = Interrupt("i1", "approval", b'"sure?"', b'{"tool": "pay"}', TERMS, 5, "r1")
REPORT = Report((ONE,), takes_input=False)
NOTE = Note(replace(ONE, id="n1", value=b""))
WAITING = StillWaiting(frozenset({"n1"}))


def paused(*operations: Operation) -> Thread:
    one = thread()
    run = one.accept_run(spec("r1"), 1)
    one.begin_attempt(run, 2)
    one.apply([checkpoint(1), *operations], Source(), 3)
    one.close_attempt(Close(Ending.PAUSED), 4)
    return one


def late(one: Thread) -> list[str]:
    found = overdue(one, 1_000)
    return [each.id for each in found.interrupts] if found is not None else []


def close_overdue(one: Thread, *, refused: str = "") -> None:
    found = overdue(one, 1_000)
    assert found is not None
    expire(one, found, 1_001, refused=refused)


@pytest.mark.parametrize("operation", [REPORT, Report((), takes_input=True), NOTE, WAITING])
def test_the_wire_keeps_them(operation: Operation) -> None:
    assert operation_from_bytes(operation_to_bytes(operation)) == operation


def test_a_compaction_carries_them_and_never_leaves_them_out() -> None:
    store = Store()
    apply(store, REPORT)
    apply(store, NOTE)
    store.interrupts.closed["old"] = None
    carried = store_from_message(store_to_message(store, (), blobs=True))
    assert carried.interrupts == store.interrupts
    store.interrupts.close(["q"], "0001")
    carried = store_from_message(store_to_message(store, (), blobs=True))
    assert carried.interrupts == store.interrupts
    assert unsheddable_bytes(store) > unsheddable_bytes(Store())


def test_what_is_reported_again_keeps_its_deadline_unless_it_was_answered() -> None:
    again = Report((replace(ONE, created_at_ms=9, terms=replace(TERMS, deadline_ms=2_000)),), takes_input=False)
    assert renewed({"i1": ONE}, again, ()).interrupts == (ONE,)
    assert renewed({"i1": ONE}, again, ["i1"]) == again
    assert renewed({"i1": replace(ONE, value=b'"other?"')}, again, ()) == again
    assert renewed({}, again, ()) == again


def test_what_a_framework_reports_has_the_kind_and_terms_that_its_question_was_noted_with() -> None:
    bare = Interrupt("i1", "question", b'"sure?"', run_id="r1")
    one = paused(NOTE, Note(replace(ONE, value=b"")), Report((bare,), takes_input=False))
    assert one.store.interrupts.reported["i1"] == replace(bare, kind="approval", terms=TERMS)
    assert set(one.store.interrupts.noted) == {"n1"}
    one.store.interrupts.report(Report((bare,), takes_input=False))
    assert one.store.interrupts.reported["i1"].terms == TERMS, "what is asked again keeps them"


def test_a_deadline_is_over_for_what_nobody_answers() -> None:
    one = paused(REPORT, NOTE)
    assert next_deadline_ms(one) == 1_000
    assert overdue(one, 999) is None
    assert late(one) == ["i1", "n1"]
    one.accept_run(replace(spec("r2"), answers=("i1",), resumes=True), 5)
    assert late(one) == ["n1"]


def test_what_is_overdue_is_closed_with_all_that_waits() -> None:
    one = paused(REPORT, NOTE)
    close_overdue(one)
    (run,) = one.runs.values()
    assert (run.status, run.error_type, one.status) == (RunStatus.TIMEOUT, "InterruptExpired", ThreadStatus.ERROR)
    assert next_deadline_ms(one) is None
    assert one.store.interrupts.forgotten
    for id_ in ("i1", "n1"):
        with pytest.raises(Conflict):
            one.check_run(replace(spec("r2"), answers=(id_,)), None, seen(one, id_))
    # The graph goes on from its checkpoint and may ask again.
    run = one.accept_run(spec("r3"), 6)
    one.begin_attempt(run, 7)
    assert one.store.interrupts.closed_at == "0001"
    one.close_attempt(Close(Ending.PAUSED), 8)
    one.check_run(replace(spec("r4"), answers=("n1",)), None, seen(one, "n1"))


def test_how_a_run_failed_is_not_forgotten_when_what_it_left_open_expires() -> None:
    one = paused(REPORT)
    one.begin_attempt(one.accept_run(replace(spec("r2", resumes=True), answers=("i1",)), 5), 6)
    one.close_attempt(Close(Ending.AGENT_ERROR, "ValueError", "no"), 7)
    assert late(one) == ["i1"]
    close_overdue(one)
    assert next_deadline_ms(one) is None
    last = one.last_agent_run
    assert last is not None
    assert (last.status, last.error_type) == (RunStatus.ERROR, "ValueError")


def seen(one: Thread, *waiting: str) -> Seen:
    last = one.last_agent_run
    assert last is not None
    return Seen(frozenset(waiting), last.run_id, last.status.terminal, "0001")


def test_what_a_host_saw_counts_as_long_as_nothing_has_changed() -> None:
    one = paused()
    answer = replace(spec("r2"), answers=("g1",), answers_graph=True)
    look = seen(one, "g1")
    assert seen_from_message(seen_to_message(look)) == look
    one.check_run(answer, None, look)
    for old in (replace(look, head="0000"), replace(look, last_run=RunId("r0")), replace(look, last_ended=False)):
        with pytest.raises(Conflict) as refused:
            one.check_run(answer, None, old)
        assert CHANGED in refused.value.details
    for other in (None, seen(one)):
        with pytest.raises(Conflict, match="does not wait"):
            one.check_run(answer, None, other)


def test_an_answer_under_way_is_the_only_one_and_others_may_follow_it() -> None:
    one = paused()
    look = seen(one, "g1", "g2")
    first = replace(spec("r2", resumes=True), answers=("g1",), answers_graph=True)
    one.check_run(first, None, look)
    one.begin_attempt(one.accept_run(first, 5), 6)
    with pytest.raises(Conflict, match="answered already, by run r2"):
        one.check_run(replace(first, run_id=RunId("r3")), None, look)
    # The update of a run that was accepted comes again.
    one.check_run(first, None, look)
    one.check_run(replace(first, run_id=RunId("r3"), answers=("g2",)), None, seen(one, "g2"))


def test_a_run_that_would_harm_what_was_asked_after_it_was_accepted_ends_before_it_begins() -> None:
    one = thread()
    run = one.accept_run(spec("r1"), 1)
    late = one.accept_run(spec("r2"), 1)
    one.begin_attempt(run, 2)
    one.apply([REPORT], Source(), 3)
    one.close_attempt(Close(Ending.PAUSED), 4)
    assert one.refuse_late(late, 5)
    assert (late.status, late.error_type, late.attempts) == (RunStatus.ERROR, "Conflict", [])
    assert list(one.store.interrupts.reported) == ["i1"]


def test_a_run_that_answers_a_graph_leaves_the_terms_of_the_others() -> None:
    other = Note(replace(ONE, id="n2"))
    one = paused(NOTE, other)
    one.begin_attempt(one.accept_run(replace(spec("r2", resumes=True), answers=("n1",), answers_graph=True), 5), 6)
    assert list(one.store.interrupts.noted) == ["n2"]
    one.close_attempt(Close(Ending.PAUSED), 7)
    one.begin_attempt(one.accept_run(spec("r3"), 8), 9)
    assert not one.store.interrupts.noted


def begun(one: Thread, run_id: str, *answers: str) -> Thread:
    """The same thread with a run that has begun, and brings these answers."""
    run = one.accept_run(replace(spec(run_id), answers=answers, answers_graph=True, resumes=True), 10)
    one.begin_attempt(run, 11)
    return one


@pytest.mark.parametrize("answers", [("n1",), ()], ids=["answers", "goes on"])
def test_what_a_graph_asked_waits_as_before_where_the_run_that_goes_on_fails(answers: tuple[str, ...]) -> None:
    for how in (Ending.AGENT_ERROR, Ending.CANCELLED):
        one = begun(paused(NOTE), "r2", *answers)
        assert next_deadline_ms(one) is None
        assert interrupts_from_message(interrupts_to_message(one.store.interrupts)) == one.store.interrupts
        one.close_attempt(Close(how), 20)
        assert one.store.interrupts.noted == {"n1": NOTE.interrupt}
        late = begun(paused(NOTE), "r2", *answers)
        late.close_attempt(Close(how), 2_000)
        assert late.store.interrupts.noted["n1"].terms == Terms(TERMS.schema), "it was overdue, and is not due again"


def test_a_question_that_is_asked_again_keeps_its_deadline_and_one_that_is_answered_has_none() -> None:
    again = Note(replace(NOTE.interrupt, terms=replace(TERMS, deadline_ms=9_000)))
    for answers, deadline in ((), 1_000), (("n1",), 9_000):
        one = begun(paused(NOTE), "r2", *answers)
        one.apply([again], Source(), 12)
        one.close_attempt(Close(Ending.PAUSED), 13)
        assert next_deadline_ms(one) == deadline
    one = begun(paused(NOTE), "r2", "n1")
    one.close_attempt(Close(Ending.PAUSED), 13)
    assert next_deadline_ms(one) is None


def test_an_answer_goes_to_the_agent_that_asked() -> None:
    one = paused(REPORT)
    answering = replace(spec("r2"), answers=("i1",), resumes=True)
    with pytest.raises(Conflict, match="was asked by agent"):
        one.check_run(replace(answering, agent="another"))
    one.check_run(answering)


def test_of_what_was_noted_only_what_waits_at_the_pause_has_a_deadline() -> None:
    swallowed = Note(replace(ONE, id="n2", value=b"", terms=replace(TERMS, deadline_ms=500)))
    one = paused(swallowed, NOTE, WAITING)
    assert next_deadline_ms(one) == 1_000
    assert late(one) == ["n1"]


def test_terms_of_what_a_graph_asked_end_with_its_checkpoint() -> None:
    one = paused(NOTE, WAITING)
    one.begin_attempt(one.accept_run(spec("s", kind=RunKind.SESSION), 5), 6)
    one.apply([checkpoint(2)], Source(), 7)
    one.close_attempt(Close(Ending.COMPLETED), 8)
    assert next_deadline_ms(one) is None


def test_how_a_default_answer_was_refused_is_in_the_error_of_the_run_that_waited() -> None:
    one = paused(REPORT)
    close_overdue(one, refused="no room")
    assert one.runs[RunId("r1")].status is RunStatus.TIMEOUT
    assert "before the deadline, and the default answer could not be given (no room)" in (
        one.runs[RunId("r1")].error_message
    )
