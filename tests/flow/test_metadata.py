"""Metadata is JSON: integers stay integers on the whole way, what is not JSON is refused by name and leaves nothing."""

import json
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.flow.agents.metadata import BAD, GOOD
from tests.flow.conftest import Project, called, client_of
from tests.support.waiting_sync import until

pytestmark = pytest.mark.flow

HTTP = httpx.Client(timeout=30)

# What a client can write into a body: Python's json knows NaN, and so do careless servers.
BAD_BODIES = {
    "big": '{"metadata": {"outer": {"big": 9007199254740993}}}',
    "huge": '{"metadata": {"huge": 1e999}}',
    "nan": '{"metadata": {"nan": NaN}}',
    "deep": '{"metadata": {"deep": ' + "[" * 60 + "]" * 60 + "}}",
    "half": '{"metadata": {"half": "\\ud800"}}',
}


def text(metadata: Any) -> str:
    """As JSON, in which 3 and 3.0 differ."""
    return json.dumps(metadata, sort_keys=True)


def test_checkpoint_metadata_comes_back_as_what_it_was(shared: Project) -> None:
    client = client_of(shared.hosts[0])
    thread, same = called(client, "metadata:good")
    assert same
    shown = client.threads.get_state(thread)["metadata"]
    assert text({key: shown[key] for key in GOOD}) == text(GOOD)


def test_checkpoint_metadata_that_is_not_json_is_refused_by_its_key(shared: Project) -> None:
    client = client_of(shared.hosts[0])
    thread, said = called(client, "metadata:bad")
    for name in BAD:
        assert f"metadata[{name!r}]" in said[name]
        assert f"metadata[{name!r}][0]['inner']" in said[f"{name} in a list"]
    assert client.threads.get_history(thread) == []
    assert client.threads.get(thread)["status"] == "idle"


def test_a_deleted_run_takes_its_own_checkpoints_along_whatever_run_they_say_has_made_them(shared: Project) -> None:
    client = client_of(shared.hosts[0])
    thread, _ = called(client, "metadata:forged", says=None, word="one")
    [first] = client.runs.list(thread)
    called(client, "metadata:forged", thread, says=first["run_id"], word="two")
    second = client.runs.list(thread)[0]
    history = client.threads.get_history(thread)
    assert [one["values"]["words"] for one in history[:3]] == [["one", "two"], ["one"], ["one"]]
    assert {str(one["metadata"].get("run_id")) for one in history} == {"None", first["run_id"]}  # type: ignore[union-attr]

    client.runs.delete(thread, first["run_id"])
    assert client.threads.get_history(thread) == history[:3]
    client.runs.delete(thread, second["run_id"])
    assert client.threads.get_history(thread) == []


def test_thread_metadata_comes_back_as_what_it_was(shared: Project) -> None:
    client = client_of(shared.hosts[0])
    thread = client.threads.create(metadata=GOOD)["thread_id"]
    shown = client.threads.get(thread)["metadata"]
    assert text(shown) == text(GOOD)
    client.threads.update(thread, metadata={"int": 43})
    assert text(client.threads.get(thread)["metadata"]) == text(GOOD | {"int": 43})


def test_run_metadata_comes_back_as_what_it_was(shared: Project) -> None:
    client = client_of(shared.hosts[0])
    thread = client.threads.create()["thread_id"]
    given = {"call": "metadata:good"}
    run = client.runs.create(thread, "calls", input=given, metadata=GOOD)
    client.runs.join(thread, run["run_id"])
    shown: Any = client.runs.get(thread, run["run_id"])["metadata"]
    assert text({key: shown[key] for key in GOOD}) == text(GOOD)


@pytest.mark.parametrize("name", BAD_BODIES)
def test_bad_thread_metadata_creates_nothing(name: str, shared: Project) -> None:
    host = shared.hosts[0]
    thread = str(uuid4())
    text = BAD_BODIES[name].replace("{", f'{{"thread_id": "{thread}", ', 1)
    answer = HTTP.post(f"{host.url}/threads", content=text, headers={"content-type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert name in answer.text or "JSON" in answer.text or "deep" in answer.text
    assert HTTP.get(f"{host.url}/threads/{thread}").status_code == 404


@pytest.mark.parametrize("name", BAD_BODIES)
def test_bad_run_metadata_starts_nothing(name: str, shared: Project) -> None:
    host = shared.hosts[0]
    thread = str(uuid4())
    start = f'{{"assistant_id": "calls", "if_not_exists": "create", "input": {{}}, {BAD_BODIES[name].lstrip("{")}'
    place = f"{host.url}/threads/{thread}/runs"
    answer = HTTP.post(place, content=start, headers={"content-type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert HTTP.get(f"{host.url}/threads/{thread}").status_code == 404


def test_nul_in_metadata_is_kept_and_found(shared: Project) -> None:
    # LangGraph's own server stores JSON in PostgreSQL, which has no NUL (langgraph#1878).
    client = client_of(shared.hosts[0])
    marker = f"{uuid4()}\x00after"
    thread = client.threads.create(metadata={"nul": marker})["thread_id"]
    assert client.threads.get(thread)["metadata"] == {"nul": marker}
    until(lambda: client.threads.search(metadata={"nul": marker}))
    [found] = client.threads.search(metadata={"nul": marker})
    assert found["thread_id"] == thread
    assert client.threads.search(metadata={"nul": marker.partition("\x00")[0]}) == []


@pytest.mark.parametrize("value", ["a b", "a-b", "100% _ *", "é😀", "Refunds", "x" * 140, "1", "true", ""])
def test_threads_are_found_by_exactly_their_metadata(value: str, shared: Project) -> None:
    client = client_of(shared.hosts[0])
    test = str(uuid4())
    others = [
        f"{value}!",
        f"!{value}",
        f"{value} c",
        f"c {value}",
        value.swapcase() + "-",
        value + value + "-",
        "other",
    ]
    mine = client.threads.create(metadata={"text": value, "test": test})["thread_id"]
    for other in others:
        client.threads.create(metadata={"text": other, "test": test})
    until(lambda: len(client.threads.search(metadata={"test": test}, limit=100)) == len(others) + 1)
    found = client.threads.search(metadata={"text": value, "test": test}, limit=100)
    assert [one["thread_id"] for one in found] == [mine]
