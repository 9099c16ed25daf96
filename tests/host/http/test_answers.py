"""Which interrupts a resume value answers: what is not clear is refused before there is a run."""

from dataclasses import replace
from typing import Any

import pytest
from tests.core.build import spec, thread

from agentvisor.core.attempts import Close
from agentvisor.core.errors import Conflict
from agentvisor.core.interrupts import Interrupt
from agentvisor.core.runs import Ending
from agentvisor.core.thread import Thread
from agentvisor.host.http.answers import answered_by
from agentvisor.host.http.open_interrupts import Look, Open

HEX = "0123456789abcdef0123456789abcdef"


def look(*ids: str, last: Ending | None = Ending.PAUSED, answers: tuple[str, ...] = ()) -> Look:
    one: Thread = thread()
    if last is not None:
        one.begin_attempt(one.accept_run(replace(spec("r1", resumes=True), answers=answers), 1), 2)
        one.close_attempt(Close(last), 3)
    found = {id_: Open(Interrupt(id_, "question", b""), None, {}, in_graph=True) for id_ in ids}
    return Look(one, found)


@pytest.mark.parametrize(
    "waiting, resume, answered",
    [
        (["a"], "yes", ["a"]),
        (["a"], None, ["a"]),
        (["a"], {}, ["a"]),
        (["a"], {"decisions": [1]}, ["a"]),
        (["a"], {"a": 1}, ["a"]),
        (["a", "b", "c"], {"c": 1, "a": None}, ["c", "a"]),
    ],
)
def test_an_answer_is_for_what_it_names_or_for_the_only_one(
    waiting: list[str], resume: Any, answered: list[str]
) -> None:
    assert answered_by(look(*waiting), resume) == answered


@pytest.mark.parametrize(
    "waiting, resume, says",
    [
        (["a", "b"], "yes", "2 interrupts wait: answer by id, .*: a, b"),
        (["a", "b"], {"decisions": [1]}, "2 interrupts wait"),
        (["a"], {"a": 1, "x": 2}, "interrupt x does not wait .*; what waits: a"),
        (["a"], {HEX: 1}, f"interrupt {HEX} does not wait"),
        (["a"], {"v1:tool_call:t1:0": 1}, "does not wait"),
        (["a"], {"adk-0123abcd": 1}, "does not wait"),
        ([], {HEX: 1}, "nothing waits"),
    ],
)
def test_an_answer_that_is_for_nothing_or_for_several_is_refused(waiting: list[str], resume: Any, says: str) -> None:
    with pytest.raises(Conflict, match=says):
        answered_by(look(*waiting), resume)


def test_an_answer_that_was_given_is_known_by_its_id_whatever_that_looks_like() -> None:
    with pytest.raises(Conflict, match="interrupt pay does not wait"):
        answered_by(look("b", answers=("pay",)), {"pay": True})


@pytest.mark.parametrize("last", [None, Ending.COMPLETED, Ending.AGENT_ERROR])
def test_an_answer_is_refused_where_it_is_clear_that_nothing_waits(last: Ending | None) -> None:
    with pytest.raises(Conflict, match="nothing waits"):
        answered_by(look(last=last), "yes")


def test_it_is_not_clear_at_a_breakpoint_or_while_a_run_may_ask() -> None:
    assert answered_by(look(last=Ending.PAUSED), "yes") == []
    busy = look(last=Ending.COMPLETED)
    busy.thread.accept_run(spec("r2"), 5)
    assert answered_by(busy, "yes") == []
    busy.thread.accept_run(replace(spec("r3"), answers=("a",)), 6)
    with pytest.raises(Conflict, match="a was answered already, by run r3"):
        answered_by(busy, "yes")
