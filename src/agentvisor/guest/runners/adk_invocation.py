"""What ADK is called with: a new message, answers, or the invocation that an earlier attempt has begun.

The session says what is in already: each event of it names the run that stored it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from google.adk.events.event import Event
from google.genai import types

from agentvisor._adk.stored_session import SessionKey, StoredSession
from agentvisor.client.waiting import abandons
from agentvisor.core.errors import InvalidInput
from agentvisor.guest.runners.adk_json import message_of
from agentvisor.guest.runners.adk_questions import Question, by_branch, open_questions
from agentvisor.guest.runners.adk_sessions import RunSessions
from agentvisor.protocol.metadata import Json
from agentvisor.protocol.v1.guest_pb2 import AgentTask


@dataclass(frozen=True)
class Invocation:
    """Arguments of `run_async`: a message begins or answers an invocation, an id without one goes on with it."""

    message: types.Content | None = None
    id: str | None = None


async def invocation_of(
    task: AgentTask,
    answers: Mapping[str, Json],
    sessions: RunSessions,
    key: SessionKey,
    stored: StoredSession | None,
) -> Invocation | None:
    """Decide it from what is stored; None where there is nothing to call ADK for, since answers are still missing.

    `answers` are those that the run brings for what ADK waits for.
    """
    events = stored.events if stored else []
    questions = open_questions(events)
    if task.spec.answers:
        if questions:
            return await _answered(_brought(task, answers, stored, questions), sessions, key, questions)
        return Invocation(id=_invocation_of_calls(events, answers) or (events[-1].invocation_id if events else None))
    begun = _begun(stored, task.run_id)
    if begun is not None:
        # Where the session waits already, only the news of it was lost. ADK would take the call for one to go on with.
        return None if questions else Invocation(id=begun)
    given = cast("Json", json.loads(task.spec.input)) if task.spec.input else None
    if given is None:
        if not events:
            raise InvalidInput("the run has no input, and the thread nothing to go on with", field="input")
        if questions and abandons(task):
            # The agent goes on and hears that nobody has answered; what somebody has answered before counts.
            known = await sessions.kept_answers(key, questions)
            parts = {one.id: one.answered(known[one.id]) if one.id in known else one.abandoned() for one in questions}
            return await _given(sessions, key, questions, parts)
        return None if questions else Invocation(id=events[-1].invocation_id)
    message = message_of(given)
    if questions:
        # Its caller has given them up, or the run that asked them never told of them.
        await append(sessions, key, by_branch(questions, {one.id: one.abandoned() for one in questions}))
        await sessions.forget_answers(key)
    return Invocation(message)


async def keep(task: AgentTask, answers: Mapping[str, Json], sessions: RunSessions, key: SessionKey) -> None:
    """Keep what was answered, where the run may end with another question before ADK is given it."""
    stored = await sessions.seen(key)
    questions = open_questions(stored.events) if stored else []
    await sessions.keep_answers(key, _brought(task, answers, stored, questions))


def _brought(
    task: AgentTask, answers: Mapping[str, Json], stored: StoredSession | None, questions: Sequence[Question]
) -> list[tuple[Question, Json]]:
    """The questions that the run answers, each with an answer that is one; `InvalidInput` for others."""
    # A workflow may ask under the same id again: what this run has answered already, it has not answered once more.
    taken = _answered_by(stored, task.run_id)
    brought = [(one, answers[one.id]) for one in questions if one.id in answers and one.id not in taken]
    for question, answer in brought:
        question.check(answer)
    return brought


def gives_up(task: AgentTask, stored: StoredSession) -> bool:
    """Whether the run begins anew: what waits is of no use to it."""
    return not task.spec.answers and _begun(stored, task.run_id) is None and task.spec.input not in (b"", b"null")


async def _answered(
    brought: Sequence[tuple[Question, Json]], sessions: RunSessions, key: SessionKey, questions: Sequence[Question]
) -> Invocation | None:
    """Give ADK all answers at once: of some it would take what it was given for all, and leave the rest for ever."""
    known = await sessions.kept_answers(key, questions) | {question.id: answer for question, answer in brought}
    if any(one.id not in known for one in questions):
        await sessions.keep_answers(key, brought)
        return None
    return await _given(sessions, key, questions, {one.id: one.answered(known[one.id]) for one in questions})


async def _given(
    sessions: RunSessions, key: SessionKey, questions: Sequence[Question], parts: Mapping[str, types.Part]
) -> Invocation:
    *early, last = by_branch(questions, parts)
    await append(sessions, key, early)
    return Invocation(last.content)


def _answered_by(stored: StoredSession | None, run_id: str) -> set[str]:
    """The ids of what this run has answered in the session."""
    if stored is None:
        return set()
    return {
        str(answer.id)
        for event, run in zip(stored.events, stored.runs, strict=True)
        if run == run_id and event.author == "user"
        for answer in event.get_function_responses()
    }


def _begun(stored: StoredSession | None, run_id: str) -> str | None:
    """The invocation that this run has begun, if it came that far."""
    if stored is None:
        return None
    for event, run in zip(stored.events, stored.runs, strict=True):
        if run == run_id and event.author == "user" and not event.get_function_responses():
            return event.invocation_id
    return None


def _invocation_of_calls(events: Sequence[Event], answers: Mapping[str, Json]) -> str | None:
    for event in reversed(events):
        if any(call.id in answers for call in event.get_function_calls()):
            return event.invocation_id
    return None


async def append(sessions: RunSessions, key: SessionKey, events: Sequence[Event]) -> None:
    """Store events that ADK does not make by itself."""
    if not events:
        return
    session = await sessions.get_session(app_name=key.app, user_id=key.user, session_id=key.id)
    if session is None:
        return
    for event in events:
        await sessions.append_event(session, event)
