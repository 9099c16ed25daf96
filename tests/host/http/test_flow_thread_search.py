"""Threads searched, counted, sorted and extracted from, on a real Temporal server; nothing injects anything."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import httpx
import pytest
import pytest_asyncio
from langgraph_sdk.client import LangGraphClient
from tests.support.waiting import until

from agentvisor.core.errors import Unavailable
from agentvisor.core.ids import ThreadId
from agentvisor.core.thread import Thread
from agentvisor.host.http import thread_search
from agentvisor.host.threads import Threads

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]

NASTY = [
    "'", '"', "\\", "' OR 1=1 --", "'; DROP TABLE executions; --", "x' OR AgentVisorStatus = 'idle", "\x00", "a\x00b",
    "\n", "\x1f", "%", "_", "*", "=", "==", "a=b", "null", "true", "1", "1.0", "-0", "NaN", "é", "日本", "🙂", "\u2028",
    "x" * 150, "x" * 151, "x" * 5000, "AND", "ORDER BY", "$where", "../../etc", "", " ", "\u202e", "`", "(", ")",
    "e", "E", "É", "a", "A", " a", "a ", "a  b", "a b", "ａ", "ß", "ss", "\t", "a♡b", "♡",
]  # fmt: skip


class Found:
    """Three threads of one mark: one that is done, one that asks, one that nothing ran on."""

    def __init__(self, mark: str, done: str, asks: str, new: str) -> None:
        self.mark = {"mark": mark}
        self.done, self.asks, self.new = done, asks, new


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def found(host: Any) -> AsyncGenerator[Found]:
    async with httpx.AsyncClient(base_url=host.url, timeout=30) as http:
        mark = f"mark-{uuid.uuid4().hex[:12]}"
        metadata = [
            {"n": 1, "on": True, "deep": {"a": [1, 2], "b": "x"}, "text": "1"},
            {"n": 2, "text": 'it\'s "quoted" \\'},
            {"n": 3, "nothing": None},
        ]
        ids = [
            (await http.post("/threads", json={"metadata": {"mark": mark, **one}})).json()["thread_id"]
            for one in metadata
        ]
        for named, agent, count in ((ids[0], "waiting", 1), (ids[1], "asking", 5)):
            body = {"assistant_id": agent, "input": {"count": count}}
            assert (await http.post(f"/threads/{named}/runs/wait", json=body)).status_code == 200

        async def settled() -> bool:
            statuses = {
                status: (await http.post("/threads/count", json={"metadata": {"mark": mark}, "status": status})).json()
                for status in ("idle", "interrupted")
            }
            return statuses == {"idle": 2, "interrupted": 1}

        await until(settled)
        yield Found(mark, *ids)


Search = Callable[..., Awaitable[list[str]]]


@pytest_asyncio.fixture(loop_scope="session")
async def search(http: httpx.AsyncClient, found: Found) -> Search:
    """Ids of the three threads, in their order, that a search finds."""

    async def ids(**filters: Any) -> list[str]:
        body = {"metadata": found.mark, "sort_by": "created_at", "sort_order": "asc", "limit": 100, **filters}
        response = await http.post("/threads/search", json=body)
        assert response.status_code == 200, response.text
        counted = {name: value for name, value in body.items() if name in ("metadata", "values", "status")}
        named = [one["thread_id"] for one in response.json()]
        if "ids" not in filters:
            assert (await http.post("/threads/count", json=counted)).json() == len(named)
        return named

    return ids


@pytest.mark.parametrize(
    "metadata, whom",
    [
        ({"n": 1}, "done"), ({"n": 1.0}, "done"), ({"n": "1"}, ""), ({"text": "1"}, "done"), ({"text": 1}, ""),
        ({"on": True}, "done"), ({"on": 1}, ""), ({"on": "true"}, ""), ({"deep": {"a": [2]}}, "done"),
        ({"deep": {"a": [3]}}, ""), ({"deep": {}}, "done"), ({"nothing": None}, "new"), ({"n": None}, ""),
        ({"text": "it's \"quoted\" \\"}, "asks"), ({"graph_id": "asking"}, "asks"), ({}, "done asks new"),
    ],
)  # fmt: skip
async def test_metadata_finds_what_has_it(search: Search, found: Found, metadata: Any, whom: str) -> None:
    assert await search(metadata={**found.mark, **metadata}) == [getattr(found, one) for one in whom.split()]


@pytest.mark.parametrize(
    "values, whom",
    [
        ({"count": 2}, "done"), ({"count": 6}, "asks"), ({"count": 7}, ""), ({"log": ["waited"]}, "done"),
        ({"log": ["worked"]}, "done asks"), ({"log": ["worked", "nope"]}, ""), ({"nope": 1}, ""), ({}, "done asks new"),
    ],
)  # fmt: skip
async def test_values_find_what_has_them(search: Search, found: Found, values: Any, whom: str) -> None:
    assert await search(values=values) == [getattr(found, one) for one in whom.split()]


async def test_filters_hold_together(search: Search, found: Found) -> None:
    assert await search(status="interrupted", values={"log": ["worked"]}) == [found.asks]
    assert await search(status="idle", values={"log": ["worked"]}) == [found.done]
    assert await search(status="busy", values={"log": ["worked"]}) == []
    assert await search(ids=[found.new, found.asks], values={"count": 6}) == [found.asks]
    assert await search(ids=[str(uuid.uuid4())]) == []


@pytest.mark.parametrize("values", [None, {"log": ["worked"]}], ids=["by the index", "by looking"])
async def test_pages_follow_each_other(http: httpx.AsyncClient, found: Found, values: Any) -> None:
    body = {"metadata": found.mark, "limit": 1, "select": ["thread_id"], **({"values": values} if values else {})}
    seen: list[str] = []
    following: str | None = "0"
    while following is not None:
        response = await http.post("/threads/search", json={**body, "offset": int(following)})
        seen += [one["thread_id"] for one in response.json()]
        following = response.headers.get("x-pagination-next")
        assert int(response.headers["x-pagination-total"]) == len(seen) + (following is not None)
    assert sorted(seen) == sorted([found.done, found.asks] if values else [found.done, found.asks, found.new])


@pytest.mark.parametrize("key", ["thread_id", "status", "created_at", "updated_at", "state_updated_at"])
async def test_every_order_is_kept_both_ways(sdk: LangGraphClient, found: Found, key: Any) -> None:
    up = await sdk.threads.search(metadata=found.mark, sort_by=key, sort_order="asc")
    down = await sdk.threads.search(metadata=found.mark, sort_by=key, sort_order="desc")
    assert [one[key] for one in up] == sorted(one[key] for one in up)
    assert [one[key] for one in down] == sorted((one[key] for one in down), reverse=True)
    assert len(up) == len(down) == 3


async def test_parts_are_extracted_beside_what_is_selected(sdk: LangGraphClient, found: Found) -> None:
    paths = {"last": "values.log[-1]", "n": "metadata.n", "none": "values.nope[3].x", "asked": "interrupts"}
    [done] = await sdk.threads.search(ids=[found.done], select=["thread_id"], extract=paths)
    assert done == {
        "thread_id": found.done,
        "extracted": {"last": "waited", "n": 1, "none": None, "asked": {}},
    }
    [asks] = await sdk.threads.search(ids=[found.asks], select=["status"], extract={"asked": "interrupts"})
    [[question]] = asks["extracted"]["asked"].values()
    assert (asks["status"], question["value"]) == ("interrupted", {"question": "sure?"})


async def test_a_search_that_would_look_at_too_many_says_so(
    http: httpx.AsyncClient, found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_search, "MOST_LOOKED_AT", 2)
    for more, what in (({"values": {"nope": 1}}, "values"), ({"sort_by": "status"}, "sort_by")):
        response = await http.post("/threads/search", json={"metadata": found.mark, **more})
        assert response.status_code == 422
        assert response.json()["detail"].startswith(f"{what}: no index has it, and over 2 threads match the rest")
        assert response.json()["metadata"] == {"field": what}
    response = await http.post("/threads/count", json={"metadata": {**found.mark, "deep": {}}})
    assert response.json()["detail"].startswith("metadata.deep: no index has it")
    narrow = {"metadata": {**found.mark, "n": 1}, "values": {"count": 2}}
    assert (await http.post("/threads/count", json=narrow)).json() == 1


async def test_a_nasty_text_finds_itself_and_nothing_else(http: httpx.AsyncClient) -> None:
    mark = f"nasty-{uuid.uuid4().hex[:12]}"
    ids: dict[str, str] = {}
    for text in NASTY:
        response = await http.post("/threads", json={"metadata": {"mark": mark, "text": text}})
        assert response.status_code == 200, (text, response.text)
        ids[text] = response.json()["thread_id"]

    async def all_found() -> bool:
        return (await http.post("/threads/count", json={"metadata": {"mark": mark}})).json() == len(NASTY)

    await until(all_found)
    for text, named in ids.items():
        body = {"metadata": {"mark": mark, "text": text}, "select": ["thread_id"], "limit": 100}
        response = await http.post("/threads/search", json=body)
        assert response.status_code == 200, (text, response.text)
        assert response.json() == [{"thread_id": named}], repr(text)


async def test_a_number_is_found_whether_it_is_written_as_a_float_or_not(http: httpx.AsyncClient) -> None:
    mark = uuid.uuid4().hex
    ids = {
        (await http.post("/threads", json={"metadata": {"mark": mark, "n": one}})).json()["thread_id"]
        for one in (2, 2.0)
    }

    async def found() -> bool:
        searched = [
            (await http.post("/threads/search", json={"metadata": {"mark": mark, "n": one}})).json() for one in (2, 2.0)
        ]
        return all({one["thread_id"] for one in threads} == ids for threads in searched)

    await until(found)


async def test_a_thread_with_more_metadata_than_the_index_takes_lives_and_keeps_it_all(http: httpx.AsyncClient) -> None:
    big = {f"key{number:02}": f"{number}" + "É" * 60 for number in range(60)}
    created = await http.post("/threads", json={"metadata": big})
    assert created.status_code == 200
    at = f"/threads/{created.json()['thread_id']}"
    patched = await http.patch(at, json={"metadata": {"team": "refunds", **{f"a{n}": "x" * 190 for n in range(30)}}})
    assert patched.status_code == 200
    assert patched.json()["metadata"].items() >= {**big, "team": "refunds"}.items()
    ran = await http.post(f"{at}/runs/wait", json={"assistant_id": "waiting", "input": {"count": 1}})
    assert ran.json()["count"] == 2
    found = {"metadata": {"graph_id": "waiting", "a0": "x" * 190}, "select": ["thread_id"]}

    async def is_found() -> bool:
        return (await http.post("/threads/search", json=found)).json() == [{"thread_id": at.rpartition("/")[2]}]

    await until(is_found)


@pytest.mark.parametrize("status", ["'", "idle' OR 'a'='a", "", 1, None, ["idle"], {"$ne": "x"}])
async def test_a_status_is_one_of_four(http: httpx.AsyncClient, found: Found, status: Any) -> None:
    response = await http.post("/threads/search", json={"metadata": found.mark, "status": status})
    assert response.status_code == (200 if status is None else 422)


async def test_nothing_that_is_sent_as_a_filter_breaks_the_search(http: httpx.AsyncClient, found: Found) -> None:
    odd: list[Any] = [*NASTY, "\ud800", "x\udfff", 10**400, -(2**63), 1e308, 1e-300, [], {}, [[]], {"a": None}, [None]]
    bodies: list[Any] = [
        *({"metadata": {**found.mark, key: 1}} for key in odd if isinstance(key, str)),
        *({"metadata": {**found.mark, "other": value}} for value in odd),
        *({"metadata": found.mark, "values": {key: 1}} for key in odd if isinstance(key, str)),
        *({"metadata": found.mark, "values": {"count": value}} for value in odd),
        *({"metadata": found.mark, "ids": [value]} for value in odd),
        *({"metadata": found.mark, "select": [value]} for value in odd),
        *({"metadata": found.mark, "sort_by": value} for value in odd),
        *({"metadata": found.mark, "extract": {"a": value}} for value in odd),
        *({"metadata": found.mark, "extract": {value: "values"}} for value in odd if isinstance(value, str)),
        {"metadata": {**found.mark, **{f"key{number}": number for number in range(200)}}},
        {"metadata": found.mark, "ids": [str(uuid.uuid4()) for _ in range(1000)]},
        {"metadata": found.mark, "ids": ["x" * 255 for _ in range(1000)]},
        {"metadata": found.mark, "ids": [f"{number:0255}" for number in range(1000)]},
        {"metadata": found.mark, "ids": [str(number) for number in range(1001)]},
        {"metadata": found.mark, "offset": 2**63},
    ]
    gate = asyncio.Semaphore(8)

    async def answer(body: Any) -> tuple[int, Any]:
        # httpx would refuse half a surrogate pair; as an escape it is JSON.
        async with gate:
            content = json.dumps(body).encode()
            response = await http.post("/threads/search", content=content)
            return response.status_code, response.json()

    for body, (status, answered) in zip(bodies, await asyncio.gather(*map(answer, bodies)), strict=True):
        assert status in (200, 422), (str(body)[:200], answered)
        if status == 422:
            assert answered["detail"], str(body)[:200]
        elif any(name in body for name in ("ids", "values")) or len(body["metadata"]) > 1:
            assert answered == [], str(body)[:200]


def unreadable(monkeypatch: pytest.MonkeyPatch, thread_id: str) -> None:
    """As a thread is whose workflow task fails each time that it is tried."""
    get = Threads.get

    async def fails(self: Threads, asked: ThreadId) -> Thread:
        if asked == thread_id:
            raise Unavailable(f"Temporal did not answer for thread {asked}")
        return await get(self, asked)

    monkeypatch.setattr(Threads, "get", fails)


async def test_a_thread_that_cannot_be_read_does_not_hide_the_others(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"mark-{uuid.uuid4().hex[:12]}"
    asked = {"metadata": {"mark": mark}}
    good, broken = [(await http.post("/threads", json=asked)).json()["thread_id"] for _ in range(2)]
    question = {"assistant_id": "asking", "input": {}}
    asks = [(await http.post(f"/threads/{one}/runs/wait", json=question)).json() for one in (good, broken)]
    waits = asks[0]["__interrupt__"][0]["id"]
    unreadable(monkeypatch, broken)

    async def both() -> bool:
        return (await http.post("/threads/count", json=asked)).json() == 2

    await until(both)
    found = {one["thread_id"]: one for one in (await http.post("/threads/search", json=asked)).json()}
    assert found.keys() == {good, broken}
    assert (found[good]["status"], found[good]["metadata"]["mark"]) == ("interrupted", mark)
    assert (found[broken]["status"], found[broken]["error"]["error"]) == ("error", "Unavailable")
    assert broken in found[broken]["error"]["message"]
    by_values = {**asked, "values": {}, "sort_by": "created_at"}
    assert len((await http.post("/threads/search", json=by_values)).json()) == 2

    async def listed() -> bool:
        return waits in [one["id"] for one in (await http.get("/interrupts", params={"limit": 100})).json()]

    await until(listed)
    runs = (await http.post("/runs/search", json={"limit": 1000})).json()
    assert good in {one["thread_id"] for one in runs}
    # Alone, it is no list with a thread that is lost, but one that cannot be had.
    alone = await http.post("/threads/search", json={"ids": [broken]})
    assert (alone.status_code, broken in alone.json()["detail"]) == (503, True)
