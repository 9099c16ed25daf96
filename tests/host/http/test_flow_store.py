"""Items over HTTP, as LangGraph's client sends them, on a real Temporal server."""

import asyncio
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from langgraph_sdk.client import LangGraphClient

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


def root() -> str:
    """A first label that no other test has."""
    return uuid4().hex


async def test_an_item_that_was_put_is_got_searched_and_listed_at_once(sdk: LangGraphClient) -> None:
    first = root()
    for number in range(8):  # each in a namespace that Temporal's list does not have yet
        await sdk.store.put_item([first, f"user{number}"], "likes", {"n": number, "text": "tea"})
        found = await sdk.store.search_items([first])
        assert [item["value"]["n"] for item in found["items"]] == list(range(number + 1))
        listed = await sdk.store.list_namespaces([first])
        assert listed["namespaces"] == [[first, f"user{one}"] for one in range(number + 1)]
    item = await sdk.store.get_item([first, "user3"], "likes")
    assert item["namespace"] == [first, "user3"]
    assert item["key"] == "likes"
    assert item["value"] == {"n": 3, "text": "tea"}
    assert item["created_at"] == item["updated_at"]


async def test_another_value_keeps_when_an_item_was_created(sdk: LangGraphClient) -> None:
    space = [root()]
    await sdk.store.put_item(space, "a", {"v": 1})
    before = await sdk.store.get_item(space, "a")
    await sdk.store.put_item(space, "a", {"v": 2})
    after = await sdk.store.get_item(space, "a")
    assert after["value"] == {"v": 2}
    assert after["created_at"] == before["created_at"]
    assert after["updated_at"] > before["updated_at"]


async def test_an_item_that_is_not_there_is_null_and_one_that_was_deleted_too(sdk: LangGraphClient) -> None:
    space = [root(), "x"]
    assert await sdk.store.get_item(space, "a") is None
    await sdk.store.put_item(space, "a", {})
    await sdk.store.put_item(space, "b", {})
    await sdk.store.delete_item(space, "a")
    await sdk.store.delete_item(space, "never there")
    await sdk.store.delete_item([root()], "nor its namespace")
    assert await sdk.store.get_item(space, "a") is None
    assert [one["key"] for one in (await sdk.store.search_items(space))["items"]] == ["b"]


async def test_a_namespace_without_items_is_not_listed_and_takes_items_again(sdk: LangGraphClient) -> None:
    first = root()
    for round_ in range(3):
        await sdk.store.put_item([first, "a"], "k", {"round": round_})
        await sdk.store.put_item([first, "b"], "k", {})
        await sdk.store.delete_item([first, "a"], "k")
        assert (await sdk.store.list_namespaces([first]))["namespaces"] == [[first, "b"]]


@pytest.mark.parametrize(
    "condition, numbers",
    [
        ({"n": 1}, [1]),
        ({"n": {"$eq": 1}}, [1]),
        ({"n": {"$ne": 1}}, [0, 2, 3]),
        ({"n": {"$gt": 1}}, [2, 3]),
        ({"n": {"$gte": 1}}, [1, 2, 3]),
        ({"n": {"$lt": 1}}, [0]),
        ({"n": {"$lte": 1}}, [0, 1]),
        ({"n": {"$gt": 0, "$lt": 3}}, [1, 2]),
        ({"n": 1, "odd": False}, []),
        ({"in": {"deep": 2}}, [2]),
        ({"list": [2, 3]}, [2]),
        ({"list": 2}, []),
        ({"missing": None}, [0, 1, 2, 3]),
        ({"missing": {"$ne": 1}}, [0, 1, 2, 3]),
        ({"missing": {"$gt": 1}}, []),
    ],
)
async def test_filters_are_those_of_langgraph(
    filled: list[str], sdk: LangGraphClient, condition: dict[str, object], numbers: list[int]
) -> None:
    found = await sdk.store.search_items(filled, filter=condition)
    assert [one["value"]["n"] for one in found["items"]] == numbers


@pytest.fixture(scope="module")
def filled_root() -> list[str]:
    return [root()]


@pytest_asyncio.fixture(loop_scope="session")
async def filled(filled_root: list[str], sdk: LangGraphClient) -> list[str]:
    for n in range(4):
        value = {"n": n, "odd": bool(n % 2), "in": {"deep": n, "more": 1}, "list": [n, n + 1], "text": "one"}
        await sdk.store.put_item([*filled_root, f"s{n // 2}"], f"k{n}", value)
    return filled_root


async def test_pages_go_across_namespaces(filled: list[str], sdk: LangGraphClient) -> None:
    pages = [await sdk.store.search_items(filled, limit=3, offset=offset) for offset in (0, 1, 3, 4)]
    assert [[one["value"]["n"] for one in page["items"]] for page in pages] == [[0, 1, 2], [1, 2, 3], [3], []]


async def test_a_query_and_an_index_are_taken_and_rank_nothing(filled: list[str], sdk: LangGraphClient) -> None:
    await sdk.store.put_item([*filled, "s0"], "k0", {"n": 0}, index=["n"])
    found = await sdk.store.search_items(filled, query="something about numbers", limit=10)
    assert [one["value"]["n"] for one in found["items"]] == [0, 1, 2, 3]
    assert {one["score"] for one in found["items"]} == {None}


async def test_namespaces_are_matched_at_both_ends_and_cut(sdk: LangGraphClient) -> None:
    first = root()
    for labels in (["a", "x", "end"], ["a", "y", "end"], ["b", "x"], ["b"]):
        await sdk.store.put_item([first, *labels], "k", {})

    async def listed(**asked: object) -> list[list[str]]:
        found = await sdk.store.list_namespaces(**asked)  # type: ignore[arg-type]
        return [one[1:] for one in found["namespaces"]]

    assert await listed(prefix=[first]) == [["a", "x", "end"], ["a", "y", "end"], ["b"], ["b", "x"]]
    assert await listed(prefix=[first, "a"]) == [["a", "x", "end"], ["a", "y", "end"]]
    assert await listed(prefix=[first, "*", "x"]) == [["a", "x", "end"], ["b", "x"]]
    assert await listed(prefix=[first], suffix=["*", "end"]) == [["a", "x", "end"], ["a", "y", "end"]]
    assert await listed(prefix=["*", "b"], suffix=["x"], max_depth=1000) == [["b", "x"]]
    assert await listed(prefix=[first], max_depth=2) == [["a"], ["b"]]
    assert await listed(prefix=[first], limit=2, offset=1) == [["a", "y", "end"], ["b"]]
    assert await listed(prefix=[first], suffix=["a"]) == []


@pytest.mark.parametrize(
    "method, path, body, says",
    [
        ("PUT", "items", {"namespace": [], "key": "k", "value": {}}, "namespace"),
        ("PUT", "items", {"namespace": ["a.b"], "key": "k", "value": {}}, "'a.b'"),
        ("PUT", "items", {"namespace": ["a", ""], "key": "k", "value": {}}, "label"),
        ("PUT", "items", {"namespace": ["langgraph"], "key": "k", "value": {}}, "langgraph"),
        ("PUT", "items", {"namespace": ["a"] * 40, "key": "k", "value": {}}, "40 labels"),
        ("PUT", "items", {"namespace": ["a" * 3000], "key": "k", "value": {}}, "3000 bytes"),
        ("PUT", "items", {"namespace": ["a"], "key": "k" * 2000, "value": {}}, "2000 bytes"),
        ("PUT", "items", {"namespace": ["a"], "key": "k", "value": [1]}, "value"),
        ("PUT", "items", {"namespace": ["a"], "key": "k"}, "value"),
        ("PUT", "items", {"namespace": ["a"], "key": "k", "value": {}, "ttl": -1}, "ttl"),
        ("PUT", "items", {"namespace": ["a"], "key": "k", "value": {}, "index": True}, "index"),
        ("PUT", "items", {"namespace": ["a"], "key": "k", "value": {}, "what": 1}, "what"),
        ("POST", "items/search", {"namespace_prefix": ["a"], "filter": {"n": {"$foo": 1}}}, "$foo"),
        ("POST", "items/search", {"namespace_prefix": ["a"], "filter": {"n": {"$gt": "a"}}}, "filter.n"),
        ("POST", "items/search", {"namespace_prefix": ["a"], "filter": {"x\u0000": 1}}, "filter key"),
        ("POST", "items/search", {"namespace_prefix": ["a"], "filter": {"a": {"b": {"$or": 1}}}}, "filter.a.b"),
        ("POST", "items/search", {"namespace_prefix": ["a"], "limit": 0}, "limit"),
        ("POST", "items/search", {"namespace_prefix": ["a"], "limit": 1001}, "limit"),
        ("POST", "items/search", {"namespace_prefix": ["a"], "offset": -1}, "offset"),
        ("POST", "namespaces", {"prefix": ["a.b"]}, "prefix"),
        ("POST", "namespaces", {"max_depth": 0}, "max_depth"),
        ("DELETE", "items", {"namespace": ["a"]}, "key"),
        ("GET", "items?key=k", None, "namespace"),
        ("GET", "items?namespace=a", None, "key"),
        ("GET", "items?namespace=a..b&key=k", None, "label"),
    ],
)
async def test_what_cannot_be_stored_or_asked_is_refused_by_name(
    http: httpx.AsyncClient, method: str, path: str, body: object, says: str
) -> None:
    answer = await http.request(method, f"/store/{path}", json=body)
    assert answer.status_code == 422
    assert says in answer.json()["detail"]


async def test_an_item_that_is_too_large_is_413_and_nothing_is_stored(
    http: httpx.AsyncClient, sdk: LangGraphClient
) -> None:
    space = [root()]
    body = {"namespace": space, "key": "large", "value": {"text": "x" * 1_600_000}}
    answer = await http.put("/store/items", json=body)
    assert answer.status_code == 413
    assert "storage.max_inline_value" in answer.json()["detail"]
    assert await sdk.store.get_item(space, "large") is None


async def test_a_full_namespace_is_413_says_the_way_out_and_others_take_more(
    http: httpx.AsyncClient, sdk: LangGraphClient
) -> None:
    first = root()
    part = {"text": "x" * 500_000}
    for number in range(3):
        await sdk.store.put_item([first, "full"], f"k{number}", part)
    body = {"namespace": [first, "full"], "key": "one more", "value": part}
    answer = await http.put("/store/items", json=body)
    assert answer.status_code == 413
    assert "spread items over more namespaces" in answer.json()["detail"]
    await sdk.store.put_item([first, "other"], "k", part)
    await sdk.store.put_item([first, "full"], "k0", {"text": "small"})
    await sdk.store.put_item([first, "full"], "one more", part)
    keys = [one["key"] for one in (await sdk.store.search_items([first, "full"]))["items"]]
    assert keys == ["k0", "k1", "k2", "one more"]


async def test_items_expire_and_a_read_puts_it_off_unless_told_otherwise(sdk: LangGraphClient) -> None:
    space, seconds = [root()], 1.2
    for key in ("read", "peeked", "lasting"):
        await sdk.store.put_item(space, key, {}, ttl=None if key == "lasting" else seconds / 60)  # type: ignore[arg-type]
    for _ in range(4):
        await asyncio.sleep(seconds / 2)  # what is awaited is time itself
        await sdk.store.get_item(space, "read")
        await sdk.store.get_item(space, "peeked", refresh_ttl=False)
    assert [one["key"] for one in (await sdk.store.search_items(space))["items"]] == ["read", "lasting"]
    assert await sdk.store.get_item(space, "peeked") is None


async def test_fifty_writers_of_one_namespace_lose_nothing(sdk: LangGraphClient) -> None:
    space = [root()]
    await asyncio.gather(*(sdk.store.put_item(space, f"k{number:02}", {"n": number}) for number in range(50)))
    found = await sdk.store.search_items(space, limit=100)
    assert sorted(one["value"]["n"] for one in found["items"]) == list(range(50))
