"""Copies of threads over HTTP: the root's current checkpoint with its pending writes, and nothing else (S9)."""

import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError
from tests.support.waiting import until

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


async def begun(sdk: LangGraphClient, agent: str, given: Any, **metadata: Any) -> str:
    """A thread on which the agent has run once."""
    thread = str(uuid.uuid4())
    await sdk.threads.create(thread_id=thread, metadata=metadata)
    await sdk.runs.wait(thread, agent, input=given)
    return thread


async def copied(http: httpx.AsyncClient, thread: str) -> dict[str, Any]:
    response = await http.post(f"/threads/{thread}/copy")
    assert response.status_code == 200, response.text
    return response.json()


async def answered(sdk: LangGraphClient, thread: str, agent: str, answer: str) -> Any:
    return await sdk.runs.wait(thread, agent, command={"resume": answer})


async def test_a_copy_has_the_current_checkpoint_alone_and_is_independent(
    sdk: LangGraphClient, http: httpx.AsyncClient
) -> None:
    thread = await begun(sdk, "waiting", {"count": 1}, owner="ann", n=3)
    source = await sdk.threads.get_state(thread)
    copy = await copied(http, thread)
    assert (copy["status"], copy["interrupts"], copy["warnings"]) == ("idle", {}, [])
    kept = (await sdk.threads.get(thread))["metadata"]
    assert kept.items() >= {"owner": "ann", "n": 3}.items()
    assert copy["metadata"] == {**kept, "copied_from": thread}
    (state,) = await sdk.threads.get_history(copy["thread_id"])
    assert state["values"] == source["values"] == {"count": 2, "log": ["worked", "waited"]}
    assert state["checkpoint"]["checkpoint_id"] == source["checkpoint"]["checkpoint_id"]
    assert state["parent_checkpoint"] is None
    assert await sdk.runs.list(copy["thread_id"]) == []

    went_on = await sdk.runs.wait(copy["thread_id"], "waiting", input={"count": 10})
    assert went_on == {"count": 11, "log": ["worked", "waited", "worked", "waited"]}
    assert await sdk.threads.get_state(thread) == source
    assert len(await sdk.threads.get_history(thread)) == 4


async def test_a_copy_of_a_waiting_thread_is_answered_on_its_own(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    thread = await begun(sdk, "asking", {"count": 1})
    copy = await copied(http, thread)
    source = await sdk.threads.get(thread)
    assert (copy["status"], copy["interrupts"]) == ("interrupted", source["interrupts"])
    assert [one["value"] for asked in copy["interrupts"].values() for one in asked] == [{"question": "sure?"}]
    state, source_state = await sdk.threads.get_state(copy["thread_id"]), await sdk.threads.get_state(thread)
    assert (state["next"], state["interrupts"]) == (["ask"], source_state["interrupts"])

    assert (await answered(sdk, copy["thread_id"], "asking", "copy"))["log"] == ["worked", "answer copy"]
    assert (await sdk.threads.get(thread))["status"] == "interrupted"
    assert (await answered(sdk, thread, "asking", "source"))["log"] == ["worked", "answer source"]
    assert (await sdk.threads.get_state(copy["thread_id"]))["values"]["log"] == ["worked", "answer copy"]


async def test_a_copy_of_a_copy_outlives_what_it_was_made_of(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    thread = await begun(sdk, "asking", {"count": 1})
    first = (await copied(http, thread))["thread_id"]
    second = (await copied(http, first))["thread_id"]
    await sdk.threads.delete(thread)
    await sdk.threads.delete(first)
    assert (await answered(sdk, second, "asking", "still"))["log"] == ["worked", "answer still"]


async def test_a_copy_paused_inside_a_subgraph_says_that_the_subgraph_starts_anew(
    sdk: LangGraphClient, http: httpx.AsyncClient
) -> None:
    thread = await begun(sdk, "nested_later", {"count": 1})
    copy = await copied(http, thread)
    assert copy["status"] == "interrupted"
    assert copy["warnings"] == [
        "only the state of the root graph is copied: the subgraphs of 'inner' start anew in the copy"
    ]
    kept = (await sdk.threads.get(thread))["metadata"]
    assert copy["metadata"] == {**kept, "copied_from": thread, "subgraphs_start_anew": ["inner"]}
    assert (await sdk.threads.get(copy["thread_id"]))["metadata"]["subgraphs_start_anew"] == ["inner"]
    # The subgraph runs from its start, with the answer given: `sub worked` is there once, as in the source.
    assert (await answered(sdk, copy["thread_id"], "nested_later", "yes"))["log"][-2:] == ["sub worked", "answer yes"]
    assert (await answered(sdk, thread, "nested_later", "yes"))["log"][-2:] == ["sub worked", "answer yes"]


async def test_once_a_subgraph_has_finished_nothing_of_it_is_missed(
    sdk: LangGraphClient, http: httpx.AsyncClient
) -> None:
    thread = await begun(sdk, "nested_later", {"count": 1})
    await answered(sdk, thread, "nested_later", "yes")
    assert (await copied(http, thread))["warnings"] == []


async def test_delta_channels_are_whole_in_a_copy(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    thread = await begun(sdk, "deltas", {"items": ["first"]})
    for turn in range(3):
        await answered(sdk, thread, "deltas", str(turn))
        await sdk.runs.wait(thread, "deltas", input={"items": [f"turn {turn}"]})
    copy = (await copied(http, thread))["thread_id"]
    await sdk.threads.prune([thread])  # nothing of the copy is in the source
    (state,) = await sdk.threads.get_history(copy)
    assert state["next"] == ["confirm"]
    result = await answered(sdk, copy, "deltas", "last")
    assert result["seen"] == [
        "first", "item 1", "answer 0", "turn 0", "item 4", "answer 1", "turn 1", "item 7", "answer 2", "turn 2",
        "item 10", "answer last",
    ]  # fmt: skip
    await sdk.runs.wait(copy, "deltas", input={"items": ["more"]})
    went_on = await answered(sdk, copy, "deltas", "end")
    assert went_on["seen"] == [*result["seen"], "more", "item 13", "answer end"]


async def test_a_busy_thread_is_copied_as_far_as_it_has_come(
    sdk: LangGraphClient, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    gate, thread = tmp_path / "gate", str(uuid.uuid4())
    given = {"count": 1, "gate": str(gate)}
    run = await sdk.runs.create(thread, "waiting", input=given, if_not_exists="create")
    await until(gate.with_suffix(".started").exists)
    copy = await copied(http, thread)
    assert (copy["values"]["log"], copy["status"]) == (["worked"], "interrupted")
    assert (await sdk.threads.get_state(copy["thread_id"]))["next"] == ["wait"]
    gate.touch()
    assert (await sdk.runs.wait(copy["thread_id"], "waiting", input=None))["log"] == ["worked", "waited"]
    await sdk.runs.join(thread, run["run_id"])
    assert (await sdk.threads.get_state(thread))["values"]["log"] == ["worked", "waited"]


async def test_threads_without_checkpoints_and_without_existence(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    empty = (await sdk.threads.create(metadata={"a": 1}))["thread_id"]
    copy = await copied(http, empty)
    assert (copy["status"], copy["values"], copy["metadata"]) == ("idle", None, {"a": 1, "copied_from": empty})
    with pytest.raises(NotFoundError, match="does not exist"):
        await sdk.threads.copy(str(uuid.uuid4()))


async def test_a_copy_takes_no_wishes(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    thread = (await sdk.threads.create())["thread_id"]
    before = await sdk.threads.count()
    for body in (b"garbage", b'{"checkpoint_id": "1"}', b"[]", b'"text"', b"\xff"):
        refused = await http.post(f"/threads/{thread}/copy", content=body)
        assert refused.status_code == 422, refused.text
    refused = await http.post(f"/threads/{thread}/copy", json={"checkpoint_id": "1"})
    assert "checkpoint_id" in refused.json()["detail"]
    assert await sdk.threads.count() == before
    for body in (b"", b"{}", b"null"):
        assert (await http.post(f"/threads/{thread}/copy", content=body)).status_code == 200
