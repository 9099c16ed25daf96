"""Threads over LangGraph's own client, on a real Temporal server."""

import uuid
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError
from tests.host.http.conftest import NAMES
from tests.support.waiting import until

from agentvisor.core.errors import Unavailable
from agentvisor.host.http import threads_history
from agentvisor.host.http.agents import assistant_id
from agentvisor.host.threads import Threads

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]

THREAD_FIELDS = {
    "thread_id", "created_at", "updated_at", "state_updated_at", "metadata", "status", "config", "values",
    "interrupts", "error",
}  # fmt: skip


def unique(prefix: str = "t") -> str:
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


async def test_a_thread_is_created_shown_changed_and_deleted(sdk: LangGraphClient) -> None:
    created = await sdk.threads.create(metadata={"n": 3, "f": 1.5, "deep": {"a": [1, None, "é"]}})
    named = created["thread_id"]
    assert set(created) == THREAD_FIELDS
    assert uuid.UUID(named)
    assert (created["status"], created["values"], created["interrupts"]) == ("idle", None, {})
    assert await sdk.threads.get(named) == created

    patched = await sdk.threads.update(named, metadata={"n": 4, "new": True})
    assert patched["metadata"] == {"n": 4, "f": 1.5, "deep": {"a": [1, None, "é"]}, "new": True}
    assert isinstance(patched["metadata"]["n"], int)

    await sdk.threads.delete(named)
    with pytest.raises(NotFoundError, match=f"thread {named} does not exist"):
        await sdk.threads.get(named)
    with pytest.raises(NotFoundError):
        await sdk.threads.delete(unique("never-was"))
    assert (await sdk.threads.create(thread_id=named))["metadata"] == {}


async def test_metadata_that_grows_is_refused_before_the_thread_can_be_read_no_more(http: httpx.AsyncClient) -> None:
    large = {"metadata": {"k": "x" * 600_000}}
    refused = await http.post("/threads", json=large)
    assert refused.status_code == 413, refused.text
    assert "store large data in values or in the store" in refused.json()["detail"]
    thread = (await http.post("/threads", json={"metadata": {"kept": 1}})).json()["thread_id"]
    sent = [await http.patch(f"/threads/{thread}", json={"metadata": {f"k{n}": "x" * 200_000}}) for n in range(4)]
    assert [one.status_code for one in sent] == [200, 200, 413, 413]
    shown = (await http.get(f"/threads/{thread}")).json()
    assert set(shown["metadata"]) == {"kept", "k0", "k1"}
    smaller = await http.patch(f"/threads/{thread}", json={"metadata": {"k0": None, "k1": None, "k2": "there"}})
    assert smaller.json()["metadata"] == {"kept": 1, "k0": None, "k1": None, "k2": "there"}


async def test_who_waits_for_a_history_hears_of_an_outage_in_which_nothing_can_be_undone(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        raise Unavailable("Temporal did not answer")

    monkeypatch.setattr(threads_history, "updated", fails)
    monkeypatch.setattr(Threads, "delete", fails)
    given = {"metadata": {"graph_id": "waiting"}, "supersteps": [{"updates": [{"as_node": "work", "values": {}}]}]}
    answer = await http.post("/threads", json=given, timeout=5)
    assert (answer.status_code, answer.json()["detail"]) == (503, "Temporal did not answer")


async def test_a_thread_that_exists_is_refused_or_comes_back(sdk: LangGraphClient) -> None:
    named = unique()
    await sdk.threads.create(thread_id=named, metadata={"a": 1})
    with pytest.raises(ConflictError, match="exists already"):
        await sdk.threads.create(thread_id=named)
    again = await sdk.threads.create(thread_id=named, metadata={"a": 2}, if_exists="do_nothing")
    assert again["metadata"] == {"a": 1}


@pytest.mark.parametrize("named", ["a b", "", "é", "a" * 256])
async def test_a_bad_thread_id_creates_nothing(http: httpx.AsyncClient, named: str) -> None:
    response = await http.post("/threads", json={"thread_id": named})
    assert response.status_code == 422
    assert "use 1 to 255 characters" in response.json()["detail"]


@pytest.mark.parametrize("value", [2**53 + 1, -(2**60)])
async def test_metadata_that_would_lose_digits_is_refused_by_its_key(sdk: LangGraphClient, value: int) -> None:
    named = unique()
    with pytest.raises(UnprocessableEntityError, match=r"metadata\['deep'\]\['big'\]"):
        await sdk.threads.create(thread_id=named, metadata={"deep": {"big": value}})
    with pytest.raises(NotFoundError):
        await sdk.threads.get(named)


def found_by(sdk: LangGraphClient, expected: set[str], **filters: Any) -> Callable[[], Any]:
    async def found() -> bool:
        return {one["thread_id"] for one in await sdk.threads.search(**filters)} == expected

    return found


async def test_threads_are_found_by_metadata_status_and_id(sdk: LangGraphClient) -> None:
    mark = unique("mark")
    first = (await sdk.threads.create(metadata={"mark": mark, "n": 1, "on": True}))["thread_id"]
    second = (await sdk.threads.create(metadata={"mark": mark, "n": 2}))["thread_id"]
    # Temporal's visibility lags by milliseconds.
    await until(found_by(sdk, {first, second}, metadata={"mark": mark}))
    await until(found_by(sdk, {first}, metadata={"mark": mark, "n": 1, "on": True}))
    await until(found_by(sdk, {second}, ids=[second]))
    await until(found_by(sdk, set(), metadata={"mark": mark}, status="error"))
    assert await sdk.threads.count(metadata={"mark": mark}, status="idle") == 2


async def test_a_search_is_paged_sorted_and_selected(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    mark = unique("mark")
    named = [(await sdk.threads.create(metadata={"mark": mark}))["thread_id"] for _ in range(3)]
    await until(found_by(sdk, set(named), metadata={"mark": mark}))
    body = {"metadata": {"mark": mark}, "limit": 2, "select": ["thread_id"]}
    page = await http.post("/threads/search", json=body)
    assert page.headers["x-pagination-next"] == "2"
    rest = await http.post("/threads/search", json={**body, "offset": 2})
    assert "x-pagination-next" not in rest.headers
    assert {one["thread_id"] for one in [*page.json(), *rest.json()]} == set(named)
    assert all(set(one) == {"thread_id"} for one in page.json())
    oldest_first = await sdk.threads.search(metadata={"mark": mark}, sort_by="created_at", sort_order="asc")
    assert [one["thread_id"] for one in oldest_first] == named


@pytest.mark.parametrize(
    "body, says",
    [
        ({"select": ["nope"]}, "threads have no nope"),
        ({"status": "nope"}, "status"),
    ],
)
async def test_a_search_that_cannot_be_answered_is_refused(http: httpx.AsyncClient, body: Any, says: str) -> None:
    response = await http.post("/threads/search", json=body)
    assert response.status_code == 422
    assert says in response.json()["detail"]


async def test_agents_are_assistants(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    [found] = await sdk.assistants.search(graph_id="asking", metadata={"created_by": "system"})
    assert found["assistant_id"] == assistant_id("asking")
    assert await sdk.assistants.get(found["assistant_id"]) == found
    page = await http.post(
        "/assistants/search",
        json={"limit": 2, "sort_by": "name", "sort_order": "asc", "metadata": {"created_by": "system"}},
    )
    assert [one["name"] for one in page.json()] == sorted(NAMES)[:2]
    assert (page.headers["x-pagination-total"], page.headers["x-pagination-next"]) == (str(len(NAMES)), "2")
    with pytest.raises(NotFoundError):
        await sdk.assistants.get(str(uuid.uuid4()))


async def test_the_host_says_what_it_is(http: httpx.AsyncClient) -> None:
    assert (await http.get("/ok")).json() == {"ok": True}
    info = (await http.get("/info")).json()
    assert info["agents"] == sorted(NAMES)
    assert info["grpc"].startswith("127.0.0.1:")
    paths = (await http.get("/openapi.json")).json()["paths"]
    assert "/threads/{thread_id}/runs/stream" in paths
    assert (await http.get("/docs")).status_code == 200
