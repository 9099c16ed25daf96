"""Every method of LangGraph's client does on our host what it is for."""

import asyncio
from pathlib import Path

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import LangGraphClient
from tests.host.http.sdk import assistants, crons, runs, store, threads
from tests.host.http.sdk.table import TESTS, Client, methods

from agentvisor.host.app import Host

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]

MODULES = (assistants, crons, runs, store, threads)


async def test_the_table_has_every_method_that_the_installed_client_has(sdk: LangGraphClient) -> None:
    assert TESTS.keys() == methods(sdk)


@pytest.mark.parametrize("method", sorted(TESTS))
async def test_a_method_does_what_it_is_for(method: str, sdk: LangGraphClient, tmp_path: Path) -> None:
    await TESTS[method](Client(sdk, tmp_path))


async def test_the_client_without_asyncio_speaks_to_us_as_well(host: Host) -> None:

    await asyncio.to_thread(_speak, host.url)


def _speak(url: str) -> None:
    with get_sync_client(url=url) as client:
        thread = client.threads.create(metadata={"a": 1})["thread_id"]
        parts = client.runs.stream(thread, "asking", input={"count": 1}, stream_mode="updates")
        events = [(part.event, part.data) for part in parts][1:]
        assert [event for event, _ in events] == ["updates", "updates"]
        assert events[0][1] == {"work": {"count": 2, "log": ["worked"]}}
        [[asked]] = client.threads.get(thread)["interrupts"].values()
        assert events[1][1]["__interrupt__"][0]["id"] == asked["id"]
        assert client.runs.wait(thread, "asking", command={"resume": "yes"})["log"] == ["worked", "answer yes"]
        [answered, first] = client.runs.list(thread)
        assert client.runs.join(thread, answered["run_id"])["log"] == ["worked", "answer yes"]
        joined = client.runs.join_stream(thread, first["run_id"], last_event_id="-1")
        assert [part.event for part in joined] == ["metadata", "updates", "updates"]
        assert len(client.threads.get_history(thread, limit=10)) == 4
        assert client.threads.get_state(thread)["next"] == []
        own = {"created_by": "system"}
        found = client.assistants.search(graph_id="asking", metadata=own, select=["graph_id"])
        assert found == [{"graph_id": "asking"}]
        client.threads.delete(thread)
