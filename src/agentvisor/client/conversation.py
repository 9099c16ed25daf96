"""The questions of a plain agent in this process: what was answered, and what is asked now."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import cast

from agentvisor.client.live_effects import Name
from agentvisor.client.operations import Operation, begin
from agentvisor.client.tool_scope import scope
from agentvisor.client.transport import Transport
from agentvisor.core.errors import InvalidInput
from agentvisor.core.questions import Questions
from agentvisor.protocol.effects import questions_from_message
from agentvisor.protocol.v1.store_pb2 import Answer, Question, QuestionRequest, StoreRequest, Terms

_ID = re.compile("[0-9a-f]{32}")
"""What names a question: an answer that names one is never taken for another's."""


class Paused(BaseException):
    """The run ends here and waits for an answer. Not an Exception: no `except Exception` may stop it."""


class Conversation:
    """One run's, of a function that runs from its start each time."""

    def __init__(self, transport: Transport, run_id: str) -> None:
        self._transport = transport
        self._run_id = run_id
        self._questions = Questions()
        self._lock = threading.Lock()
        self._counters: dict[str, itertools.count[int]] = {}
        self.is_paused = False
        """A question was asked that has no answer: whatever the function does now, the run is paused."""

    def begin(self, resume: object, *, answers: bool) -> bytes:
        """Take in what was asked before, and the caller's answer where there is one; the input to run on, if any.

        Raises `InvalidInput` for an answer to which there is no question, or to which there are several.
        """
        begin(self._read(), self._transport).result()
        # An agent that has asked nothing makes of the caller's command what it likes (its context holds it).
        if answers and self._questions.asked:
            for question, answer in self._assigned(resume).items():
                begin(self._answer(question, answer), self._transport).result()
        return self._questions.input if self._questions.asked else b""

    @property
    def waiting(self) -> set[str]:
        """The ids of the questions that were asked and have no answer."""
        return {one.id for one in self._questions.waiting}

    def _assigned(self, resume: object) -> dict[str, object]:
        """The answers by the questions that they are for, without those that an earlier attempt has noted."""
        waiting = [one.id for one in self._questions.waiting]
        noted = {one.id for one in self._questions.asked.values() if one.answered_by == self._run_id}
        by_id: Mapping[str, object] = cast("Mapping[str, object]", resume) if isinstance(resume, Mapping) else {}
        if by_id and set(by_id) <= noted.union(waiting):
            return {one: answer for one, answer in by_id.items() if one not in noted}
        if noted:
            return {}
        if stale := sorted(one for one in by_id if _ID.fullmatch(one) and one not in waiting):
            raise InvalidInput(f"question {stale[0]} does not wait for an answer (any more)", field="command.resume")
        if len(waiting) == 1:
            return {waiting[0]: resume}
        if not waiting:
            raise InvalidInput("the run brings an answer (command.resume), and no question waits for one")
        raise InvalidInput(f"{len(waiting)} questions wait: answer by id, as {{id: answer}}")

    def asked(self, name: str, kind: str, value: bytes, terms: Terms | None = None) -> Operation[object]:
        """The answer to the question of that name; asks it, and raises `Paused`, where there is none yet."""
        known = next((one for one in self._questions.asked.values() if one.name == name), None)
        if known is None:
            asking = QuestionRequest(ask=Question(name=name, kind=kind, value=value, terms=terms))
            yield from self._told(StoreRequest(question=asking))
            known = next(one for one in self._questions.asked.values() if one.name == name)
        if known.answer is None:
            self.is_paused = True
            raise Paused(f"question {known.id} waits for an answer")
        return json.loads(known.answer)

    def next_name(self) -> str:
        """Of a question that the function asks: by its order, inside an effect by that effect and the order there."""
        path = scope() + "/".join(key for _, key in within())
        with self._lock:
            return f"{path}#{next(self._counters.setdefault(path, itertools.count()))}"

    def _read(self) -> Operation[None]:
        yield from self._told(StoreRequest(question=QuestionRequest(read=True)))

    def _answer(self, question: str, answer: object) -> Operation[None]:
        told = Answer(id=question, answer=json.dumps(answer).encode())
        yield from self._told(StoreRequest(question=QuestionRequest(answer=told)))

    def _told(self, request: StoreRequest) -> Operation[None]:
        reply = yield request
        self._questions = questions_from_message(reply.questions)


_current: list[Conversation] = []
_within: ContextVar[tuple[Name, ...]] = ContextVar("agentvisor_within", default=())


def set_conversation(conversation: Conversation) -> None:
    """Of this process: there is one run in it."""
    _current[:] = [conversation]


def conversation() -> Conversation | None:
    """The conversation of this process; None where the agent is not a plain one."""
    return _current[-1] if _current else None


@contextmanager
def inside(name: Name) -> Generator[None]:
    """What runs now is the effect of that name."""
    before = _within.get()
    _within.set((*before, name))
    try:
        yield
    finally:
        _within.set(before)


def within() -> tuple[Name, ...]:
    """The effects that the caller is inside of, the outermost first."""
    return _within.get()
