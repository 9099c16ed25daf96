"""The laws of ADK's session services, for any of them: what ADK's own services keep, restated since its wheel has none.

Each law takes a service of its own. `NOT_KEPT` names the laws that a service of ADK's does not keep, which is why they
stand here for ours.
"""

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.adk.sessions.session import Session
from google.genai import types
from pydantic import BaseModel

Service = BaseSessionService
Law = Callable[[Service], Awaitable[None]]

ME: dict[str, Any] = {"app_name": "app", "user_id": "me"}


def event(text: str, *, at: float = 0, **more: Any) -> Event:
    """An event of an agent; at a moment where that matters."""
    delta = more.pop("state", None)
    if at:
        more["timestamp"] = at
    if delta is not None:
        more["actions"] = EventActions(state_delta=delta)
    content = types.Content(role="model", parts=[types.Part(text=text)])
    return Event(author="agent", invocation_id="i", content=content, **more)


async def again(service: Service, session: Session) -> Session:
    """The session as it is stored."""
    found = await service.get_session(app_name=session.app_name, user_id=session.user_id, session_id=session.id)
    assert found is not None
    return found


def texts(session: Session) -> list[str]:
    return [str(part.text) for one in session.events if one.content for part in one.content.parts or []]


async def nothing_is_found_where_nothing_is(service: Service) -> None:
    assert await service.get_session(**ME, session_id="none") is None
    assert (await service.list_sessions(**ME)).sessions == []
    assert await service.get_user_state(**ME) == {}


async def an_id_is_given_once_for_each_user_and_app(service: Service) -> None:
    created = await service.create_session(**ME, session_id="s", state={"k": 1})
    with pytest.raises(AlreadyExistsError):
        await service.create_session(**ME, session_id="s")
    assert (await again(service, created)).state == {"k": 1}
    await service.create_session(app_name="app", user_id="you", session_id="s", state={"k": 2})
    await service.create_session(app_name="other", user_id="me", session_id="s", state={"k": 3})
    assert (await again(service, created)).state == {"k": 1}


async def an_id_that_is_not_given_is_made_up(service: Service) -> None:
    first, second = await service.create_session(**ME), await service.create_session(**ME)
    assert first.id
    assert first.id != second.id
    assert (await again(service, first)).id == first.id


async def ids_may_hold_anything(service: Service) -> None:
    names = ["a/b", "a%2Fb", "ä ö", "~x", "n" * 300]
    for name in names:
        await service.create_session(app_name="app", user_id=name, session_id=name, state={"name": name})
    for name in names:
        found = await service.get_session(app_name="app", user_id=name, session_id=name)
        assert found is not None
        assert (found.id, found.user_id, found.state) == (name, name, {"name": name})
        assert len((await service.list_sessions(app_name="app", user_id=name)).sessions) == 1


async def blanks_around_an_id_are_none_of_it(service: Service) -> None:
    created = await service.create_session(**ME, session_id="  s  ")
    assert created.id == "s"
    found = await service.get_session(**ME, session_id=" s ")
    assert found is not None
    await service.delete_session(**ME, session_id=" s ")
    assert await service.get_session(**ME, session_id="s") is None


async def state_belongs_to_what_its_prefix_names(service: Service) -> None:
    given = {"app:a": 1, "user:u": 2, "temp:t": 3, "s": 4}
    first = await service.create_session(**ME, session_id="1", state=given)
    assert {key: first.state[key] for key in ("app:a", "user:u", "s")} == {"app:a": 1, "user:u": 2, "s": 4}
    assert (await again(service, first)).state == {"app:a": 1, "user:u": 2, "s": 4}
    second = await service.create_session(**ME, session_id="2")
    assert second.state == {"app:a": 1, "user:u": 2}
    stranger = await service.create_session(app_name="app", user_id="you", session_id="3")
    assert stranger.state == {"app:a": 1}
    foreign = await service.create_session(app_name="other", user_id="me", session_id="4")
    assert foreign.state == {}
    assert await service.get_user_state(**ME) == {"u": 2}


async def an_event_changes_each_scope(service: Service) -> None:
    first = await service.create_session(**ME, session_id="1", state={"s": 0, "user:u": 0, "kept": True})
    second = await service.create_session(**ME, session_id="2")
    await service.append_event(first, event("x", state={"s": 1, "user:u": 2, "app:a": 3}))
    assert (await again(service, first)).state == {"s": 1, "user:u": 2, "app:a": 3, "kept": True}
    assert (await again(service, second)).state == {"user:u": 2, "app:a": 3}
    await service.append_event(await again(service, second), event("y", state={"user:u": 5}))
    assert (await again(service, first)).state["user:u"] == 5
    assert await service.get_user_state(**ME) == {"u": 5}


async def temporary_state_is_seen_and_never_stored(service: Service) -> None:
    session = await service.create_session(**ME, session_id="s")
    stored = await service.append_event(session, event("x", state={"temp:t": 1, "s": 2}))
    assert session.state["temp:t"] == 1
    assert stored.actions.state_delta == {"s": 2}
    found = await again(service, session)
    assert found.state == {"s": 2}
    assert found.events[0].actions.state_delta == {"s": 2}


async def what_is_set_on_a_session_itself_is_not_stored(service: Service) -> None:
    session = await service.create_session(**ME, session_id="s", state={"deep": {"list": [1]}})
    session.state["deep"]["list"].append(2)
    session.state["more"] = 1
    assert (await again(service, session)).state == {"deep": {"list": [1]}}


async def sessions_are_copies_of_their_own(service: Service) -> None:
    session = await service.create_session(**ME, session_id="s", state={"user:deep": {"n": 1}})
    await service.append_event(session, event("x"))
    found = await again(service, session)
    found.state["user:deep"]["n"] = 2
    found.events[0].author = "somebody"
    found.events.append(event("y"))
    fresh = await again(service, session)
    assert (fresh.state, fresh.events[0].author, texts(fresh)) == ({"user:deep": {"n": 1}}, "agent", ["x"])


async def events_come_back_equal_and_in_order(service: Service) -> None:
    session = await service.create_session(**ME, session_id="s")
    call = types.FunctionCall(id="c", name="pay", args={"n": 1, "deep": [{"x": None}]})
    parts = [
        types.Part(function_call=call),
        types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\x00\xff")),
    ]
    whole = Event(
        author="agent",
        invocation_id="i",
        branch="a.b",
        long_running_tool_ids={"c"},
        content=types.Content(role="model", parts=parts),
        actions=EventActions(state_delta={"k": "v"}, transfer_to_agent="b", agent_state={"step": 2}),
        custom_metadata={"m": 1},
        error_code="E",
        output={"o": [1]},
        timestamp=1_742_000_000.123456,
    )
    await service.append_event(session, event("first", at=1_742_000_000.1))
    await service.append_event(session, whole)
    found = await again(service, session)
    assert found.events[1] == whole
    assert found.events == session.events
    assert found.last_update_time == pytest.approx(whole.timestamp)


async def events_of_one_moment_keep_their_order(service: Service) -> None:
    session = await service.create_session(**ME, session_id="s")
    at = session.last_update_time + 1
    for number in range(12):
        await service.append_event(session, event(str(number), at=at))
    assert texts(await again(service, session)) == [str(number) for number in range(12)]


async def a_partial_event_leaves_no_trace(service: Service) -> None:
    session = await service.create_session(**ME, session_id="s")
    returned = await service.append_event(session, event("half", partial=True, state={"k": 1}))
    assert returned.partial
    assert (session.events, session.state) == ([], {})
    found = await again(service, session)
    assert (found.events, found.state) == ([], {})


async def a_session_that_is_not_there_takes_no_event(service: Service) -> None:
    session = await service.create_session(**ME, session_id="s")
    await service.delete_session(**ME, session_id="s")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, event("x", state={"temp:t": 1}))
    never = Session(id="never", app_name="app", user_id="me")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(never, event("x"))
    assert (await service.list_sessions(**ME)).sessions == []


async def deleting_takes_the_session_and_nothing_else(service: Service) -> None:
    kept = await service.create_session(**ME, session_id="kept", state={"k": 1})
    gone = await service.create_session(**ME, session_id="gone", state={"user:u": 1, "app:a": 2})
    await service.append_event(gone, event("x", state={"user:u": 3}))
    for _ in range(2):
        await service.delete_session(**ME, session_id="gone")
    assert await service.get_session(**ME, session_id="gone") is None
    assert (await again(service, kept)).state == {"k": 1, "user:u": 3, "app:a": 2}
    fresh = await service.create_session(**ME, session_id="gone")
    assert (await again(service, fresh)).events == []
    assert fresh.state == {"user:u": 3, "app:a": 2}


async def sessions_are_listed_by_their_last_change(service: Service) -> None:
    first = await service.create_session(**ME, session_id="1", state={"k": 1})
    second = await service.create_session(**ME, session_id="2", state={"app:a": 1})
    yours = await service.create_session(app_name="app", user_id="you", session_id="3")
    await service.create_session(app_name="other", user_id="me", session_id="4")
    newest = yours.last_update_time
    await service.append_event(second, event("x", at=newest + 1))
    await service.append_event(first, event("y", at=newest + 2))
    mine = (await service.list_sessions(**ME)).sessions
    assert [one.id for one in mine] == ["2", "1"]
    assert [one.events for one in mine] == [[], []]
    assert [one.state for one in mine] == [{"app:a": 1}, {"app:a": 1, "k": 1}]
    assert [one.id for one in (await service.list_sessions(app_name="app")).sessions] == ["3", "2", "1"]


async def a_session_may_be_read_in_part(service: Service) -> None:
    session = await service.create_session(**ME, session_id="s")
    start = session.last_update_time
    for number in range(1, 6):
        await service.append_event(session, event(str(number), at=start + number, state={"n": number}))

    async def read(**config: Any) -> Session:
        found = await service.get_session(**ME, session_id="s", config=GetSessionConfig(**config))
        assert found is not None
        return found

    assert texts(await read(num_recent_events=2)) == ["4", "5"]
    assert texts(await read(num_recent_events=0)) == []
    assert texts(await read(num_recent_events=99)) == ["1", "2", "3", "4", "5"]
    assert texts(await read(after_timestamp=start + 3)) == ["3", "4", "5"]
    assert texts(await read(after_timestamp=start + 9)) == []
    assert texts(await read(after_timestamp=start + 2, num_recent_events=1)) == ["5"]
    part = await read(num_recent_events=1)
    assert part.state == {"n": 5}
    await service.append_event(part, event("6", at=start + 6))
    assert texts(await again(service, session))[-2:] == ["5", "6"]


class Order(BaseModel):
    number: int


async def state_that_is_not_json_is_stored_as_what_it_says(service: Service) -> None:
    when = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)
    state = {"when": when, "order": Order(number=7), "numbers": {1, 2}, "function": texts}
    session = await service.create_session(**ME, session_id="s", state={"first": when})
    await service.append_event(session, event("x", state=dict(state)))
    found = await again(service, session)
    assert found.state["first"].startswith("2026-11-30T12:00:00")
    assert found.state["when"].startswith("2026-11-30T12:00:00")
    assert found.state["order"] == {"number": 7}
    assert sorted(found.state["numbers"]) == [1, 2]
    assert "function texts" in found.state["function"]


async def a_writer_whose_session_is_not_the_newest_is_refused(service: Service) -> None:
    session = await service.create_session(**ME, session_id="s")
    stale = await again(service, session)
    await service.append_event(session, event("first", at=session.last_update_time + 1, state={"k": 1}))
    with pytest.raises(StaleSessionError):
        await service.append_event(stale, event("late", at=session.last_update_time + 2, state={"k": 2, "user:u": 1}))
    found = await again(service, session)
    assert (texts(found), found.state) == (["first"], {"k": 1})
    await service.append_event(found, event("second", at=found.last_update_time + 1))
    assert texts(await again(service, session)) == ["first", "second"]


async def being_stale_has_nothing_to_do_with_clocks(service: Service) -> None:
    session = await service.create_session(**ME, session_id="s")
    stale = await again(service, session)
    # An event from a machine whose clock is behind.
    await service.append_event(session, event("first", at=session.last_update_time - 1000))
    with pytest.raises(StaleSessionError):
        await service.append_event(stale, event("late"))
    await service.append_event(session, event("second", at=session.last_update_time))
    await service.append_event(await again(service, session), event("third", at=session.last_update_time - 5))
    assert texts(await again(service, session)) == ["first", "second", "third"]


async def an_event_that_is_delivered_again_is_one(service: Service) -> None:
    session = await service.create_session(**ME, session_id="s")
    one = event("x", state={"k": 1})
    await service.append_event(session, one)
    await service.append_event(session, event("y", state={"k": 2}))
    await service.append_event(session, one)
    found = await again(service, session)
    await service.append_event(found, found.events[0].model_copy(deep=True))
    assert (texts(await again(service, session)), session.state) == (["x", "y"], {"k": 2})


async def branches_that_run_side_by_side_append_to_one_session(service: Service) -> None:
    session = await service.create_session(**ME, session_id="s")
    at = session.last_update_time + 1
    await asyncio.gather(*(service.append_event(session, event(str(number), at=at)) for number in range(8)))
    found = await again(service, session)
    assert sorted(texts(found)) == [str(number) for number in range(8)]
    assert found.events == session.events


LAWS: list[Law] = [
    nothing_is_found_where_nothing_is,
    an_id_is_given_once_for_each_user_and_app,
    an_id_that_is_not_given_is_made_up,
    ids_may_hold_anything,
    blanks_around_an_id_are_none_of_it,
    state_belongs_to_what_its_prefix_names,
    an_event_changes_each_scope,
    temporary_state_is_seen_and_never_stored,
    what_is_set_on_a_session_itself_is_not_stored,
    sessions_are_copies_of_their_own,
    events_come_back_equal_and_in_order,
    events_of_one_moment_keep_their_order,
    a_partial_event_leaves_no_trace,
    a_session_that_is_not_there_takes_no_event,
    deleting_takes_the_session_and_nothing_else,
    sessions_are_listed_by_their_last_change,
    a_session_may_be_read_in_part,
    state_that_is_not_json_is_stored_as_what_it_says,
    a_writer_whose_session_is_not_the_newest_is_refused,
    being_stale_has_nothing_to_do_with_clocks,
    an_event_that_is_delivered_again_is_one,
    branches_that_run_side_by_side_append_to_one_session,
]
