"""The questions of a plain agent: kept until its function has returned, answered once, never for another input."""

import pytest
from tests.core.build import spec, thread

from agentvisor.core.applying import apply
from agentvisor.core.attempts import Close
from agentvisor.core.questions import Answer, Ask, Question
from agentvisor.core.runs import Ending
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.core.weighing import unsheddable_bytes
from agentvisor.protocol.convert import operation_from_bytes, operation_to_bytes
from agentvisor.protocol.stores import store_from_message, store_to_message

ASK = Ask(Question("q1", "#0", "question", b'"sure?"', 5), b'"input"')
NEXT = Ask(Question("q2", "#1", "question", b'"really?"', 6), b"")


def asked() -> Store:
    store = Store()
    apply(store, ASK)
    return store


def test_the_input_is_that_of_the_first_question() -> None:
    store = asked()
    apply(store, NEXT)
    assert store.questions.input == b'"input"'
    assert [one.id for one in store.questions.waiting] == ["q1", "q2"]


def test_the_first_answer_counts() -> None:
    store = asked()
    apply(store, Answer("q1", b"true", "r1"))
    apply(store, Answer("q1", b"false", "r2"))
    apply(store, ASK)
    apply(store, Answer("unknown", b"1", "r2"))
    (question,) = store.questions.asked.values()
    assert (question.answer, question.answered_by) == (b"true", "r1")
    assert store.questions.waiting == []


@pytest.mark.parametrize("operation", [ASK, Answer("q1", b"1", "r")])
def test_the_wire_keeps_them(operation: Ask | Answer) -> None:
    assert operation_from_bytes(operation_to_bytes(operation)) == operation


def test_a_compaction_carries_them_and_never_leaves_them_out() -> None:
    store = asked()
    apply(store, Answer("q1", b"null", "r1"))
    carried = store_from_message(store_to_message(store, (), blobs=True))
    assert carried.questions == store.questions
    assert unsheddable_bytes(store) > unsheddable_bytes(Store())


def paused() -> Thread:
    one = thread()
    run = one.accept_run(spec("r1"), 1)
    one.begin_attempt(run, 2)
    apply(one.store, ASK)
    one.close_attempt(Close(Ending.PAUSED), 3)
    return one


def begin(one: Thread, *, resumes: bool) -> None:
    run = one.accept_run(spec("r2", resumes=resumes), 4)
    one.begin_attempt(run, 5)


def test_a_question_waits_for_a_run_that_goes_on() -> None:
    one = paused()
    assert one.status is ThreadStatus.INTERRUPTED
    begin(one, resumes=True)
    assert len(one.store.questions.waiting) == 1


def test_a_run_with_an_input_begins_without_what_was_asked_and_answered_before() -> None:
    one = paused()
    apply(one.store, Answer("q1", b"true", "r1"))
    begin(one, resumes=False)
    assert not one.store.questions.asked


def test_another_attempt_of_a_run_keeps_its_questions() -> None:
    one = paused()
    begin(one, resumes=False)
    apply(one.store, ASK)
    one.close_attempt(Close(Ending.AGENT_SIGNAL), 6)
    one.begin_attempt(next(iter(run for run in one.runs.values() if run.run_id == "r2")), 7)
    assert len(one.store.questions.waiting) == 1


@pytest.mark.parametrize("ending", [Ending.AGENT_ERROR, Ending.CANCELLED, Ending.TIME_BUDGET])
def test_a_run_that_did_not_return_leaves_its_questions(ending: Ending) -> None:
    one = paused()
    begin(one, resumes=True)
    one.close_attempt(Close(ending), 6)
    assert len(one.store.questions.waiting) == 1
    assert one.status in (ThreadStatus.ERROR, ThreadStatus.INTERRUPTED)


def test_a_function_that_has_returned_has_no_questions() -> None:
    one = paused()
    begin(one, resumes=True)
    one.close_attempt(Close(Ending.COMPLETED), 6)
    assert not one.store.questions.asked
    assert one.status is ThreadStatus.IDLE
