"""Delta channels over HTTP: what they are made of is shown, now and in the past, and after pruning."""

import uuid
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


def shown(state: Any) -> tuple[Any, list[Any]]:
    """(what it starts from, what was written since) of the channel."""
    items = state["values"]["items"]
    assert items["__type__"] == "delta"
    return items["from"], [[one.rstrip(".") for one in written] for written in items["writes"]]


async def test_a_delta_channel_is_shown_as_what_it_is_made_of(sdk: LangGraphClient) -> None:
    thread = str(uuid.uuid4())
    values: Any = await sdk.runs.wait(thread, "deltas", input={"items": ["first"]}, if_not_exists="create")
    assert shown({"values": values}) == (None, [["first"], ["item 1"]])
    await sdk.runs.wait(thread, "deltas", command={"resume": "yes"})
    made = [["first"], ["item 1"], ["answer yes"]]
    state = await sdk.threads.get_state(thread)
    assert shown(state) == (None, made)
    assert state["values"]["seen"] == ["first", "item 1", "answer yes"]
    history = await sdk.threads.get_history(thread, limit=3)
    assert [shown(one)[1] for one in history] == [made, made, made[:2]]
    past = await sdk.threads.get_state(thread, checkpoint_id=history[2]["checkpoint"]["checkpoint_id"])  # type: ignore[arg-type]
    assert shown(past) == (None, made[:2])

    await sdk.threads.prune([thread], strategy="keep_latest")
    assert shown(await sdk.threads.get_state(thread)) == (None, made)
    copy: Any = await sdk.http.post(f"/threads/{thread}/copy", json={})
    assert shown(copy) == (None, made)
