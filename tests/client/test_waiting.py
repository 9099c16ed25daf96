"""What a runner says of what waits, and what it is told of answers: what makes no sense is refused where it is said."""

import json
from typing import Any

import pytest

import agentvisor
from agentvisor.client.waiting import abandons, answers_of, terms
from agentvisor.core.errors import Conflict, InvalidInput
from agentvisor.protocol.v1.guest_pb2 import AgentTask
from agentvisor.protocol.v1.run_pb2 import RunSpec


def task(command: object = None, *answers: str) -> AgentTask:
    encoded = b"" if command is None else json.dumps(command).encode()
    return AgentTask(spec=RunSpec(command=encoded, answers=answers))


@pytest.mark.parametrize(
    "command, ids, answers",
    [
        (None, [], {}),
        ({"resume": "yes"}, ["a"], {"a": "yes"}),
        ({"resume": None}, ["a"], {"a": None}),
        ({"resume": {"decisions": [1]}}, ["a"], {"a": {"decisions": [1]}}),
        ({"resume": {"b": 2, "a": 1}}, ["b", "a"], {"b": 2, "a": 1}),
    ],
)
def test_answers_come_by_id_whatever_the_caller_wrote(command: object, ids: list[str], answers: dict[str, Any]) -> None:
    assert answers_of(task(command, *ids)) == answers


@pytest.mark.parametrize("command", [{"update": {"a": 1}}, {"goto": "node"}, {"resume": "yes", "update": {}}])
def test_what_only_a_graph_can_do_is_refused(command: object) -> None:
    with pytest.raises(InvalidInput, match="only a LangGraph graph"):
        answers_of(task(command, "a"))


def test_an_answer_to_nothing_is_refused() -> None:
    with pytest.raises(Conflict, match="nothing waited"):
        answers_of(task({"resume": "yes"}))


def test_the_host_says_whether_the_framework_still_holds_what_was_given_up() -> None:
    assert not abandons(task())
    assert abandons(AgentTask(forgets=True))


@pytest.mark.parametrize(
    "schema, deadline, on_deadline, field",
    [
        (None, 0, "cancel", "deadline"),
        (None, -1, "cancel", "deadline"),
        (None, float("nan"), "cancel", "deadline"),
        (None, 1e12, "cancel", "deadline"),
        (None, True, "cancel", "deadline"),
        (None, "5", "cancel", "deadline"),
        (None, None, "answer", "deadline"),
        (None, 5, "explode", "on_deadline"),
    ],
)
def test_terms_that_make_no_sense_are_refused(schema: Any, deadline: Any, on_deadline: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        terms(schema, deadline, on_deadline, None)
    assert refused.value.details["field"] == field


def test_a_default_answer_that_would_never_be_given_is_refused() -> None:
    with pytest.raises(InvalidInput, match='on_deadline="answer"'):
        terms(None, 5, "cancel", "no")


def test_terms_are_sent_only_where_there_are_any() -> None:
    assert terms(None, None, "cancel", None) is None
    told = terms({"type": "string"}, 0.0001, "answer", None)
    assert told is not None
    assert (told.schema, told.deadline_after_ms, told.default_answer) == (b'{"type":"string"}', 1, b"null")


def test_outside_a_run_nobody_can_be_asked() -> None:
    with pytest.raises(InvalidInput, match="works in the run"):
        agentvisor.interrupt("sure?", deadline=5)
    with pytest.raises(InvalidInput, match="not JSON"):
        agentvisor.interrupt("sure?", schema={"a": object()})  # type: ignore[dict-item]
