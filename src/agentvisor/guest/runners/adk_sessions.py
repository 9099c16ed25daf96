"""The sessions of one run: what a restarted attempt tells again is not stored again, and early answers are kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import cast

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session

from agentvisor._adk.session_service import AgentVisorSessionService
from agentvisor._adk.stored_session import SessionKey, StoredSession, prefix_of
from agentvisor._adk.thread_store import ThreadStore
from agentvisor.guest.runners.adk_json import has_parts
from agentvisor.guest.runners.adk_questions import Question
from agentvisor.guest.runners.adk_unfinished import CallsDone, Unfinished, is_inside, is_result, only
from agentvisor.protocol.metadata import Json


class RunSessions(AgentVisorSessionService):
    """Of the thread that the run is on."""

    def __init__(self, run_id: str, store: ThreadStore) -> None:
        super().__init__(store=store)
        self._run_id = run_id
        self.only: list[Unfinished] = []
        """All that ADK is to see and to do, where there are any."""
        self._seen: StoredSession | None = None
        self.has_stored: Callable[[Event], Awaitable[None]] | None = None
        """Told of each event that is stored."""

    goes_on = False
    """An earlier attempt has begun the invocation.

    A workflow then tells again where it is and what its nodes gave out. Stored once more, that would stand between a
    call and what became of it, and ADK would take the call for one that waits.
    """

    async def append_event(self, session: Session, event: Event) -> Event:
        if self.goes_on and _is_told(event, session.events):
            return event
        is_part = is_result(event) or is_inside(event.branch, event.isolation_scope, self.only)
        if self.only and not event.partial and not is_part:
            raise CallsDone
        self._seen = None
        stored = await super().append_event(session, event)
        if self.has_stored is not None and not event.partial:
            await self.has_stored(event)
        return stored

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        session = await super().get_session(app_name=app_name, user_id=user_id, session_id=session_id, config=config)
        if session is not None and self.only:
            session.events = only(session.events, self.only)
        elif session is not None and self.goes_on:
            session.events = _without_marks_behind_calls(session.events)
        return session

    async def seen(self, key: SessionKey) -> StoredSession | None:
        """What is stored, read again only where this run has appended since. To be looked at, never to be changed."""
        if self._seen is None or self._seen.key != key:
            self._seen = await self.stored(key)
        return self._seen

    async def of_thread(self, app: str, thread_id: str) -> StoredSession | None:
        """The app's session that is named like the thread, whoever its user is."""
        for name in await self._store.keys(prefix_of(app)):
            entry = await self._store.entry(name)
            if entry is not None and (stored := StoredSession(entry)).key.id == thread_id:
                self._seen = stored
                return stored
        return None

    # --- calls of long-running tools that were made ------------------------------------------------------------------

    async def started(self, key: SessionKey) -> set[str]:
        """Their ids."""
        entry = await self._store.entry(_started(key))
        return set(cast("list[str]", entry.value)) if entry is not None else set()

    async def add_started(self, key: SessionKey, call_id: str) -> None:
        """A restarted attempt does not make it again."""
        await self._store.append(_started(key), call_id)

    # --- results of calls that ended beside others (adk_finished) -----------------------------------------------------

    async def finished(self, key: SessionKey) -> dict[str, dict[str, Json]]:
        """By the event that made the calls, and their ids."""
        place = _finished(key, "")
        entries = {name: await self._store.entry(name) for name in await self._store.keys(place)}
        return {
            name.removeprefix(place): dict(cast("Mapping[str, Json]", entry.value))
            for name, entry in entries.items()
            if entry is not None
        }

    async def keep_finished(self, key: SessionKey, made_by: str, results: Mapping[str, object]) -> None:
        await self._store.update(_finished(key, made_by), results)

    async def forget_finished(self, key: SessionKey, made_by: str) -> None:
        await self._store.delete(_finished(key, made_by))

    # --- answers that came before the rest ---------------------------------------------------------------------------

    async def kept_answers(self, key: SessionKey, questions: Sequence[Question]) -> dict[str, Json]:
        """By the ids of these questions."""
        entry = await self._store.entry(_answers(key))
        kept = cast("Mapping[str, Json]", entry.value if entry is not None else {})
        return {one.id: kept[_name(one)] for one in questions if _name(one) in kept}

    async def keep_answers(self, key: SessionKey, answers: Sequence[tuple[Question, Json]]) -> None:
        """Until all others are there."""
        if answers:
            await self._store.update(_answers(key), {_name(question): answer for question, answer in answers})

    async def forget_answers(self, key: SessionKey) -> None:
        """They are in the session, or were given up."""
        await self._store.delete(_answers(key))

    async def forget_settled(self, key: SessionKey) -> None:
        """Where nothing waits: each answer is in the session, and each call of a long-running tool has its result."""
        for name in (_answers(key), _started(key)):
            if await self._store.entry(name) is not None:
                await self._store.delete(name)


def _started(key: SessionKey) -> str:
    return f"started/{key}"


def _answers(key: SessionKey) -> str:
    return f"answers/{key}"


def _finished(key: SessionKey, made_by: str) -> str:
    return f"finished/{key}/{made_by}"


def _name(question: Question) -> str:
    # A workflow may ask under the same id again: the event is another one.
    return f"{question.event.id}/{question.id}"


def _without_marks_behind_calls(events: Sequence[Event]) -> list[Event]:
    """Without errors and other marks behind a call that has no result.

    ADK makes a call again where it is the last event of its branch. Behind one that failed stands the error.
    """
    answered = {answer.id for event in events for answer in event.get_function_responses()}
    owed: set[tuple[str, str | None]] = set()
    """Branches of invocations whose last content is such a call."""
    seen: list[Event] = []
    for event in events:
        where = (event.invocation_id, event.branch)
        if has_parts(event):
            calls = {call.id for call in event.get_function_calls()} - answered
            is_owed = event.author != "user" and bool(calls) and not event.long_running_tool_ids
            (owed.add if is_owed else owed.discard)(where)
        elif where in owed:
            continue
        seen.append(event)
    return seen


def _is_told(event: Event, events: Sequence[Event]) -> bool:
    """Whether it says nothing but where an agent is, or what a node gave out, and that stands there already."""
    actions = event.actions
    if has_parts(event) or actions.state_delta or actions.artifact_delta or actions.end_of_agent:
        return False
    before = [one for one in events if one.invocation_id == event.invocation_id]
    if actions.agent_state is not None:
        if "nodes" in actions.agent_state:
            # A workflow's, which no process ever reads: it finds its place by what its nodes gave out.
            return True
        states = [one.actions.agent_state for one in before if one.author == event.author]
        return next((one for one in reversed(states) if one is not None), None) == actions.agent_state
    if event.output is None:
        return False
    given = [one for one in before if one.node_info.path == event.node_info.path]
    return any(one.output == event.output or one.node_info.message_as_output for one in given)
