"""What our session service keeps beyond ADK's contract: what it costs, and what a death between two writes leaves."""

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from tests._adk.session_contract import ME, event
from tests._adk.thread_state_double import Died, ThreadStateDouble

from agentvisor.adk import AgentVisorSessionService


async def test_an_event_is_one_write_of_its_own_size() -> None:
    store = ThreadStateDouble()
    service = AgentVisorSessionService(store=store)
    session = await service.create_session(**ME, session_id="s")
    sizes: list[int] = []
    for number in range(200):
        before = store.written
        await service.append_event(session, event("x" * 100, at=1.0, state={"n": number % 10}))
        sizes.append(store.written - before)
    assert store.writes == 201
    assert max(sizes) - min(sizes) == 0


@pytest.mark.parametrize("left", [0, 1, 2])
async def test_what_sessions_share_is_neither_lost_nor_changed_twice_by_a_death(left: int) -> None:
    store = ThreadStateDouble()
    session = await AgentVisorSessionService(store=store).create_session(**ME, session_id="s", state={"user:n": 0})

    async def count() -> None:
        """A step of an agent: it reads, and stores what it has made of it."""
        service = AgentVisorSessionService(store=store)
        read = await service.get_session(**ME, session_id="s")
        assert read is not None
        if not read.events:
            changed = EventActions(state_delta={"user:n": read.state["user:n"] + 1, "app:n": 1})
            await service.append_event(read, Event(author="agent", invocation_id="i", actions=changed))

    store.left = left
    with pytest.raises(Died):
        await count()
    store.left = None
    await count()
    service = AgentVisorSessionService(store=store)
    found = await service.get_session(**ME, session_id=session.id)
    assert found is not None
    assert found.state == {"user:n": 1, "app:n": 1}
    assert await service.get_user_state(**ME) == {"n": 1}
    assert (await service.create_session(**ME, session_id="other")).state == {"user:n": 1, "app:n": 1}
