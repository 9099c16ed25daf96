"""ADK's sessions on a thread's state: one append an event, and a writer whose session is not the newest is refused."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Mapping
from typing import Any, cast
from weakref import WeakKeyDictionary

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
from google.adk.sessions.session import Session

from agentvisor import thread_state
from agentvisor._adk import shared_state
from agentvisor._adk.scoped_state import ScopedState
from agentvisor._adk.stored_session import (
    SessionKey,
    SharedChange,
    StoredSession,
    appended,
    creation,
    prefix_of,
)
from agentvisor._adk.thread_store import ThreadKeys, ThreadStore
from agentvisor.core.errors import Conflict
from agentvisor.protocol.metadata import Json


class AgentVisorSessionService(BaseSessionService):
    """Keeps sessions in the thread that the agent runs on, durable when a call returns.

        Runner(app=app, session_service=AgentVisorSessionService())

    A thread sees its own sessions and no other's: `app:` and `user:` state is shared by the sessions of one thread.
    """

    def __init__(self, *, thread_id: str | None = None, store: ThreadStore = thread_state) -> None:
        """Args:
        thread_id: outside a run the thread; inside it is the run's own.
        store: where threads keep their state.
        """
        self._store = ThreadKeys(store, thread_id)
        self._run_id = os.environ.get("AGENTVISOR_RUN_ID", "")
        self._ids: dict[SessionKey, set[str]] = {}
        """Events that are known to be stored: one that is delivered again is no news."""
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    # --- sessions ----------------------------------------------------------------------------------------------------

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """Create a session; `AlreadyExistsError` where the user has one of that id."""
        key = SessionKey(app_name, user_id, (session_id or "").strip() or str(uuid.uuid4()))
        given = ScopedState.of(state or {})
        shared = await shared_state.read(self._store, key)
        stamp = shared.next_stamp if given.is_shared else 0
        first = creation(key, given, time.time(), stamp)
        try:
            revision = await self._store.append(str(key), first, 0)
        except Conflict as error:
            raise AlreadyExistsError(f"Session with id {key.id} already exists.") from error
        await shared_state.write(self._store, key, shared, [SharedChange(stamp, given)])
        self._ids[key] = set()
        created = cast("float", first["created_at"])
        return _session(key, given.session, shared, events=[], updated_at=created, revision=revision)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """Return a session of its own for each caller, or None."""
        key = SessionKey(app_name, user_id, session_id.strip())
        stored = await self.stored(key)
        if stored is None:
            return None
        self._ids[key] = set(stored.event_ids)
        shared = await self._shared(stored)
        return _session(
            key,
            stored.own_state(),
            shared,
            events=_chosen(stored.events, config),
            updated_at=stored.updated_at,
            revision=stored.revision,
        )

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Return the sessions of the thread without their events, the one that was changed last at the end."""
        found: list[Session] = []
        for name in await self._store.keys(prefix_of(app_name, user_id)):
            entry = await self._store.entry(name)
            if entry is None:
                continue
            stored = StoredSession(entry)
            shared = await self._shared(stored)
            state, at = stored.own_state(), stored.updated_at
            found.append(_session(stored.key, state, shared, events=[], updated_at=at, revision=stored.revision))
        return ListSessionsResponse(sessions=sorted(found, key=lambda one: (one.last_update_time, one.user_id, one.id)))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session and its events; what its app and user share stays. Of one that is not there: nothing."""
        key = SessionKey(app_name, user_id, session_id.strip())
        stored = await self.stored(key)
        if stored is None:
            return
        # What it changed for others must be there without it.
        await self._shared(stored)
        await self._store.delete(str(key))
        self._ids.pop(key, None)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return what the user's sessions share, without the prefix."""
        shared = await shared_state.read(self._store, SessionKey(app_name, user_id, ""))
        return dict(shared_state.values(shared.user))

    # --- events ------------------------------------------------------------------------------------------------------

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event with what it changes, in one write, and apply it to the session.

        A partial event is neither stored nor applied, and one that is stored already is not stored twice.

        Raises:
            SessionNotFoundError: there is no such session.
            StaleSessionError: somebody else has appended to it since it was read.
        """
        if event.partial:
            return event
        key = SessionKey(session.app_name, session.user_id, session.id)
        async with self._lock():
            if event.id in self._ids.get(key, ()):
                return event
            await self._append(key, session, event)
        return self._commit_event_to_session(session, event)

    async def _append(self, key: SessionKey, session: Session, event: Event) -> None:
        expected = await self._revision_of(key, session)
        self._apply_temp_state(session, event)
        self._trim_temp_delta_state(event)
        changes = ScopedState.of(event.actions.state_delta)
        shared = await shared_state.read(self._store, key) if changes.is_shared else None
        stamp = shared.next_stamp if shared else 0
        item = appended(event, self._run_id, stamp)
        try:
            revision = await self._store.append(str(key), item, expected)
        except Conflict as error:
            revision = await self._stored_anyway(key, event, error)
        if shared is not None:
            await shared_state.write(self._store, key, shared, [SharedChange(stamp, changes)])
        self._ids.setdefault(key, set()).add(event.id)
        session.last_update_time = event.timestamp
        session._storage_update_marker = str(revision)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (made for services)

    async def _revision_of(self, key: SessionKey, session: Session) -> int:
        marker = session._storage_update_marker  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        if marker is not None:
            return int(marker)
        # Somebody made the session by hand: it is as new as the events that it holds.
        stored = await self._required(key)
        held = {event.id for event in session.events}
        if stored.event_ids and stored.event_ids[-1] not in held:
            raise StaleSessionError(_stale(key))
        return stored.revision

    async def _stored_anyway(self, key: SessionKey, event: Event, error: Conflict) -> int:
        """The revision, where what the store refused is what it already has at its end."""
        stored = await self._required(key)
        if stored.event_ids and stored.event_ids[-1] == event.id:
            return stored.revision
        raise StaleSessionError(_stale(key)) from error

    # --- what is stored ----------------------------------------------------------------------------------------------

    async def stored(self, key: SessionKey) -> StoredSession | None:
        """Read a session with all that is known of each event."""
        entry = await self._store.entry(str(key))
        return StoredSession(entry) if entry is not None else None

    async def state(self, stored: StoredSession) -> dict[str, Json]:
        """Read the whole state of a session: its own, and what it shares."""
        shared = await self._shared(stored)
        return ScopedState(
            shared_state.values(shared.app), shared_state.values(shared.user), stored.own_state()
        ).merged()

    def is_stored(self, event_id: str) -> bool:
        """Whether an event of a session that was read or appended to here is stored."""
        return any(event_id in ids for ids in self._ids.values())

    async def _required(self, key: SessionKey) -> StoredSession:
        stored = await self.stored(key)
        if stored is None:
            raise SessionNotFoundError(f"Session {key.id} not found.")
        return stored

    async def _shared(self, stored: StoredSession) -> shared_state.SharedState:
        shared = await shared_state.read(self._store, stored.key)
        await shared_state.write(self._store, stored.key, shared, stored.shared_changes())
        return shared

    def _lock(self) -> asyncio.Lock:
        """One for each event loop: branches that run side by side append to the same session, one after the other."""
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())


def _session(
    key: SessionKey,
    own: Mapping[str, Json],
    shared: shared_state.SharedState,
    *,
    events: list[Event],
    updated_at: float,
    revision: int,
) -> Session:
    state = ScopedState(shared_state.values(shared.app), shared_state.values(shared.user), dict(own))
    session = Session(
        id=key.id,
        app_name=key.app,
        user_id=key.user,
        state=cast("dict[str, Any]", state.merged()),
        events=events,
        last_update_time=updated_at,
    )
    session._storage_update_marker = str(revision)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (made for services)
    return session


def _chosen(events: list[Event], config: GetSessionConfig | None) -> list[Event]:
    if config is None:
        return events
    if config.after_timestamp is not None:
        events = [event for event in events if event.timestamp >= config.after_timestamp]
    if config.num_recent_events is not None:
        events = events[-config.num_recent_events :] if config.num_recent_events else []
    return events


def _stale(key: SessionKey) -> str:
    return f"Session {key.id} was changed since it was read: get it again, and append to that."
