"""Thread state over HTTP; and what threads with saves alone show."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from tests.support.waiting import until

from agentvisor.core.errors import InvalidInput
from agentvisor.core.keys import checked_key

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


async def new_thread(sdk: LangGraphClient) -> str:
    return str((await sdk.threads.create())["thread_id"])


async def ok(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    return response.json()


async def test_a_value_is_set_changed_read_and_deleted(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    at = f"/threads/{await new_thread(sdk)}/thread-state"
    first = (await ok(await http.put(f"{at}/user/7", json={"value": {"a": 1}, "expected_revision": 0})))["revision"]
    second = (await ok(await http.patch(f"{at}/user/7", json={"changes": {"b": [None]}})))["revision"]
    found = await ok(await http.get(f"{at}/user/7"))
    assert second > first
    assert (found["value"], found["revision"], found["items"], found["key"]) == (
        {"a": 1, "b": [None]}, second, None, "user/7",
    )  # fmt: skip
    assert (await http.get(f"{at}/user%2F7")).json() == found
    assert (await http.delete(f"{at}/user/7")).status_code == 204
    assert [(await http.request(how, f"{at}/user/7")).status_code for how in ("GET", "DELETE")] == [404, 404]


async def test_a_stale_revision_is_409_and_changes_nothing(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    at = f"/threads/{await new_thread(sdk)}/thread-state/k"
    first = (await ok(await http.put(at, json={"value": {"n": 1}})))["revision"]
    await ok(await http.put(at, json={"value": {"n": 2}, "expected_revision": first}))
    for refused in (
        await http.put(at, json={"value": 3, "expected_revision": first}),
        await http.patch(at, json={"changes": {"n": 3}, "expected_revision": first}),
        await http.post(f"{at}/append", json={"item": 3, "expected_revision": 0}),
        await http.delete(at, params={"expected_revision": first}),
    ):
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict"), refused.text
    assert (await ok(await http.get(at)))["value"] == {"n": 2}


async def test_a_list_grows_by_items_and_is_read_in_pages(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    at = f"/threads/{await new_thread(sdk)}/thread-state"
    await ok(await http.put(f"{at}/events", json={"value": [0, 1]}))
    for item in range(2, 6):
        await ok(await http.post(f"{at}/events/append", json={"item": item}))
    pages, start = list[list[int]](), 0
    while start is not None:
        page = await ok(await http.get(f"{at}/events", params={"start": start, "limit": 4}))
        pages.append(page["value"])
        start = page["next"]
    assert (pages, page["items"]) == ([[0, 1, 2, 3], [4, 5]], 6)
    await ok(await http.put(f"{at}/other", json={"value": None}))
    await ok(await http.put(f"{at}/other", params={"scope": "s"}, json={"value": 1}))
    first = await ok(await http.get(at, params={"limit": 1}))
    assert ([one["key"] for one in first["entries"]], first["next"]) == (["events"], "events")
    rest = await ok(await http.get(at, params={"after": "events"}))
    assert ([one["key"] for one in rest["entries"]], rest["next"]) == (["other"], None)
    storage = await ok(await http.get(at.replace("thread-state", "storage")))
    assert storage["thread_state"]["entries"] == 3
    assert (storage["thread_state"]["items"], storage["saves"]) == (4, 0)


REFUSED: list[tuple[str, str, Any, str]] = [
    ("PUT", "k", {}, "value: Field required"),
    ("PUT", "k" * 257, {"value": 1}, "limit is 256"),
    ("PUT", "k?scope=" + "s" * 257, {"value": 1}, "limit is 256"),
    ("PUT", "k", {"value": 1, "expected_revision": -1}, "expected_revision"),
    ("PUT", "k", {"value": 1, "expected_revision": 1 << 64}, "no revision"),
    ("PATCH", "list", {"changes": {"a": 1}}, "holds no object"),
    ("POST", "text/append", {"item": 1}, "holds no list"),
    ("PATCH", "k", {"changes": [1]}, "changes"),
]


async def test_what_can_never_be_accepted_is_422_and_says_why(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    at = f"/threads/{await new_thread(sdk)}/thread-state"
    await ok(await http.put(f"{at}/list", json={"value": [1]}))
    await ok(await http.put(f"{at}/text", json={"value": "t"}))
    for how, path, body, says in REFUSED:
        refused = await http.request(how, f"{at}/{path}", json=body)
        assert (refused.status_code, says in refused.json()["message"]) == (422, True), refused.text
    assert [one["key"] for one in (await ok(await http.get(at)))["entries"]] == ["list", "text"]


async def test_a_thread_that_does_not_exist_is_404_and_is_not_made(http: httpx.AsyncClient) -> None:
    missing = uuid.uuid4()
    at = f"/threads/{missing}/thread-state"
    assert (await http.get(at)).status_code == 404
    for how, path, body in (
        ("PUT", "k", {"value": 1}),
        ("PATCH", "k", {"changes": {}}),
        ("POST", "k/append", {"item": 1}),
        ("DELETE", "k", None),
        ("GET", "k", None),
    ):
        assert (await http.request(how, f"{at}/{path}", json=body)).status_code == 404, how
    assert (await http.get(f"/threads/{missing}")).status_code == 404


async def test_beside_a_run_it_is_read_and_not_changed(
    sdk: LangGraphClient, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    thread, gate = await new_thread(sdk), tmp_path / "gate"
    at = f"/threads/{thread}/thread-state/k"
    await ok(await http.put(at, json={"value": 1}))
    run = await sdk.runs.create(thread, "waiting", input={"gate": str(gate)})
    await until(gate.with_suffix(".started").exists)
    try:
        refused = await http.put(at, json={"value": 2})
        assert (refused.status_code, "busy with run" in refused.json()["message"]) == (409, True)
        assert (await ok(await http.get(at)))["value"] == 1
    finally:
        gate.touch()
        await sdk.runs.join(thread, run["run_id"])
    await ok(await http.put(at, json={"value": 2}))
    # A graph's state is what it was: thread state stands beside it.
    assert (await sdk.threads.get_state(thread))["values"]["log"] == ["worked", "waited"]


async def test_a_write_and_a_run_at_the_same_moment_are_both_done(
    sdk: LangGraphClient, http: httpx.AsyncClient
) -> None:
    # A session that a run overtakes before it has begun was begun again and again, for ever.
    threads = [await new_thread(sdk) for _ in range(6)]

    async def both(number: int, thread: str) -> None:
        append = asyncio.create_task(
            http.post(f"/threads/{thread}/thread-state/l/append", json={"item": 1}, timeout=60)
        )
        await asyncio.sleep(number * 0.008)
        run = await sdk.runs.create(thread, "plain", input={"n": number})
        await append
        await sdk.runs.join(thread, run["run_id"])

    await asyncio.gather(*(both(number, thread) for number, thread in enumerate(threads)))
    for thread in threads:
        assert (await sdk.threads.get(thread))["status"] == "idle"


@pytest.mark.parametrize("key", ["..", "a/../b", "."])
async def test_a_key_that_urls_cannot_name_is_refused(sdk: LangGraphClient, http: httpx.AsyncClient, key: str) -> None:
    at = f"/threads/{await new_thread(sdk)}/thread-state/{key.replace('/', '%2F').replace('.', '%2E')}"
    refused = await http.put(at, json={"value": 1})
    assert refused.status_code in {405, 422}, refused.text
    with pytest.raises(InvalidInput, match="which no URL can name"):
        checked_key(key, "a key")
