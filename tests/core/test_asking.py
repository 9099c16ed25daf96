"""Agents that take turns on a thread: a question belongs to the one that asked it."""

from dataclasses import replace

import pytest
from tests.core.build import checkpoint, spec, thread, write, writes

from agentvisor.core.agent_turns import changes_hands
from agentvisor.core.answering import known
from agentvisor.core.asking import has_closed
from agentvisor.core.attempts import Close, Source
from agentvisor.core.deadlines import close_interrupts, expire, overdue
from agentvisor.core.errors import Conflict
from agentvisor.core.ids import RunId
from agentvisor.core.interrupts import Interrupt, Note, Report, StillWaiting, Terms
from agentvisor.core.questions import Ask, Question
from agentvisor.core.records import Operation
from agentvisor.core.runs import CancelAction, Ending, RunSpec, RunStatus
from agentvisor.core.thread import Thread
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.protocol.threads import spec_from_message, thread_from_message, thread_to_message
from agentvisor.protocol.v1 import run_pb2

ONE = Interrupt("i1", "approval", b'"sure?"', terms=Terms(deadline_ms=1_000), created_at_ms=5, run_id="r1")
REPORT = Report((ONE,), takes_input=False)
NOTE = Note(replace(ONE, id="n1", value=b""))
WAITING = StillWaiting(frozenset({"n1"}))


def due(one: Thread) -> list[str]:
    found = overdue(one, 1_000)
    return [each.id for each in found.interrupts] if found is not None else []


def of(agent: str, run_id: str, *answers: str, abandons: bool = False) -> RunSpec:
    message = run_pb2.RunSpec.FromString(spec(run_id, resumes=bool(answers)).body)
    message.agent, message.abandons = agent, abandons
    message.answers[:] = answers
    return spec_from_message(message)


def ran(one: Thread, given: RunSpec, *operations: Operation, ending: Ending = Ending.COMPLETED) -> Thread:
    """The thread after this run, as a compaction carries it."""
    one.begin_attempt(one.accept_run(given, 10), 11)
    one.apply([*operations], Source(), 12)
    one.close_attempt(Close(ending), 13)
    return thread_from_message(thread_to_message(one))


QUESTION = Ask(Question("q1", "#0", "question", b"1", 1, run_id="r1"), b"the input")


def test_another_agents_run_neither_takes_nor_ends_what_an_agent_asks() -> None:
    one = ran(thread(), of("plain", "r1"), QUESTION, ending=Ending.PAUSED)
    one = ran(one, of("other", "r2"))
    assert one.status is ThreadStatus.INTERRUPTED
    with pytest.raises(Conflict, match="asked by agent 'plain'"):
        one.check_run(of("other", "r3", "q1"))
    # The other one's first question has the same name, and is not the same.
    one.begin_attempt(one.accept_run(of("other", "r4"), 20), 21)
    assert not one.store.questions.asked
    one.close_attempt(Close(Ending.COMPLETED), 22)
    one.begin_attempt(one.accept_run(of("plain", "r5", "q1"), 30), 31)
    assert (one.store.questions.input, list(one.store.questions.asked)) == (b"the input", ["q1"])
    one.close_attempt(Close(Ending.COMPLETED), 32)
    assert one.status is ThreadStatus.IDLE
    assert not one.store.others


def test_what_a_graph_asks_keeps_its_terms_while_others_run_and_is_over_when_its_checkpoint_is() -> None:
    def asked() -> Thread:
        asking = writes(1, write(-3, "asked", "__interrupt__"))
        return ran(thread(), of("graph", "r1"), checkpoint(1), asking, NOTE, WAITING, ending=Ending.PAUSED)

    one = ran(asked(), of("plain", "r2"))
    assert (due(one), one.status) == (["n1"], ThreadStatus.INTERRUPTED)
    moved = ran(asked(), of("another graph", "r2"), checkpoint(2))
    assert (due(moved), moved.status) == ([], ThreadStatus.IDLE)


def test_what_another_agents_caller_gave_up_stays_so_until_the_agent_that_asked_has_forgotten_it() -> None:
    one = ran(ran(thread(), spec("r1"), checkpoint(1), REPORT, ending=Ending.PAUSED), of("other", "r2", abandons=True))
    assert one.status is ThreadStatus.IDLE
    one.begin_attempt(one.accept_run(spec("r3"), 20), 21)
    assert one.store.interrupts.forgotten
    one.apply([Report((), takes_input=True)], Source(), 22)
    assert not one.store.interrupts.forgotten


def test_deadlines_of_two_agents_end_what_each_of_them_asks() -> None:
    one = ran(
        ran(thread(), spec("r1"), checkpoint(1), REPORT, ending=Ending.PAUSED),
        of("plain", "r2"),
        QUESTION,
        ending=Ending.PAUSED,
    )
    assert due(one) == ["i1"]
    late = overdue(one, 1_000)
    assert late is not None
    expire(one, late, 1_001)
    assert (one.runs[RunId("r1")].status, one.runs[RunId("r2")].status) == (RunStatus.TIMEOUT, RunStatus.SUCCESS)
    assert list(known(one.store)) == ["q1"]


def test_what_a_graph_asks_is_not_closed_with_what_another_agent_asked() -> None:
    asked = writes(1, write(-3, "asked", "__interrupt__"))
    question = Ask(replace(QUESTION.question, terms=Terms(deadline_ms=500)), b"1")
    for first, then in ("graph", "plain"), ("plain", "graph"):
        one = thread()
        for number, agent in enumerate((first, then)):
            told = (checkpoint(1), asked, NOTE, WAITING) if agent == "graph" else (question,)
            one = ran(one, of(agent, f"r{number}"), *told, ending=Ending.PAUSED)
        late = overdue(one, 600)
        assert late is not None
        assert late.agent == "plain"
        expire(one, late, 601)
        assert not has_closed(one.store)
        assert (known(one.store), due(one)) == ({}, ["n1"])
        close_interrupts(one, 700)
        assert has_closed(one.store)


@pytest.mark.parametrize("abandons", [False, True])
def test_a_run_that_is_rolled_back_leaves_what_others_ask_as_it_was(abandons: bool) -> None:  # noqa: FBT001
    before = ran(thread(), spec("r1"), checkpoint(1), REPORT, ending=Ending.PAUSED)
    one = thread_from_message(thread_to_message(before))
    one.begin_attempt(one.accept_run(of("other", "r2", abandons=abandons), 20), 21)
    one.apply([QUESTION, checkpoint(2)], Source(), 22)
    one = thread_from_message(thread_to_message(one))
    one.request_cancel(RunId("r2"), 23, CancelAction.ROLLBACK)
    one.close_attempt(Close(Ending.CANCELLED), 24)
    assert (one.store.turn, one.store.interrupts, one.store.others) == (
        before.store.turn,
        before.store.interrupts,
        before.store.others,
    )
    assert (list(known(one.store)), one.status) == (["i1"], ThreadStatus.INTERRUPTED)


def test_a_thread_of_an_earlier_version_goes_on_as_it_began() -> None:
    one = ran(thread(), spec("r1"), checkpoint(1), REPORT, ending=Ending.PAUSED)
    one.store.turn = ""
    run = one.accept_run(of("other", "r2"), 10)
    assert changes_hands(one.runs, one.store, run)
    one.begin_attempt(run, 11, apart=False)
    one.close_attempt(Close(Ending.COMPLETED), 12)
    assert not known(one.store)
