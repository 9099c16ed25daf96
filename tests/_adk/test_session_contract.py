"""Our session service keeps every law; ADK's own keep all but those that are named here."""

from collections.abc import Callable
from pathlib import Path

import pytest
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from tests._adk import session_contract as laws
from tests._adk.session_contract import LAWS, Law, Service
from tests._adk.thread_state_double import ThreadStateDouble

from agentvisor.adk import AgentVisorSessionService

SERVICES: dict[str, Callable[[Path], Service]] = {
    "ours": lambda _: AgentVisorSessionService(store=ThreadStateDouble()),
    "in_memory": lambda _: InMemorySessionService(),
    "sqlite": lambda folder: SqliteSessionService(str(folder / "sessions.db")),
}

NOT_KEPT: dict[str, list[Law]] = {
    "ours": [],
    "in_memory": [
        laws.state_that_is_not_json_is_stored_as_what_it_says,
        laws.a_writer_whose_session_is_not_the_newest_is_refused,
        laws.being_stale_has_nothing_to_do_with_clocks,
    ],
    # It compares times, and the second of two equal events is a violated constraint.
    "sqlite": [laws.being_stale_has_nothing_to_do_with_clocks, laws.an_event_that_is_delivered_again_is_one],
}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", SERVICES)
async def test_the_law_holds(name: str, law: Law, tmp_path: Path) -> None:
    if law in NOT_KEPT[name]:
        with pytest.raises((Exception, pytest.fail.Exception)):  # each in its own way; should ADK learn it, this fails
            await law(SERVICES[name](tmp_path))
        return
    await law(SERVICES[name](tmp_path))
