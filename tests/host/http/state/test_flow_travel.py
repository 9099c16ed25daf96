"""Time travel below the root: states of subgraphs, forks of them, runs that go on from them, and histories (S29)."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from tests.host.http.state.conftest import normal

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]

Travellers = Callable[[str], Awaitable[tuple[Any, Any]]]


def innermost(state: dict[str, Any]) -> dict[str, Any]:
    """The state that waits, in the subgraph of the subgraph."""
    below = [task["state"] for task in state["tasks"] if task["state"]]
    return innermost(below[0]) if below else state


async def past_of(one: Any, following: list[str]) -> dict[str, Any]:
    """Where the innermost graph was when it went on with these nodes, newest first."""
    namespace = innermost(await one.state())["checkpoint"]["checkpoint_ns"]
    return next(past["checkpoint"] for past in await one.history(namespace) if [*past["next"]] == following)


async def nothing_but_a_run(one: Any) -> None:
    await one.run({"count": 1})


async def an_update_of_the_subgraph(one: Any) -> None:
    await one.run({"count": 1})
    await one.update({"count": 77}, at=innermost(await one.state())["checkpoint"])
    await one.resume("yes")


async def an_update_of_its_past(one: Any) -> None:
    await one.run({"count": 1})
    reached = await one.update({"count": 50}, "work", at=await past_of(one, ["work"]))
    await one.run(None, at=reached["checkpoint"])


async def a_run_from_its_past(one: Any) -> None:
    await one.run({"count": 1})
    await one.run(None, at=await past_of(one, ["work"]))
    await one.resume("yes")


async def a_run_from_where_it_waits(one: Any) -> None:
    await one.run({"count": 1})
    await one.run(None, at=innermost(await one.state())["checkpoint"])
    await one.resume("yes")


async def an_answer_at_the_heads_id(one: Any) -> None:
    await one.run({"count": 1})
    await one.resume("yes", at=(await one.history())[0]["checkpoint"])


async def an_answer_where_it_waits(one: Any) -> None:
    await one.run({"count": 1})
    await one.resume("yes", at=innermost(await one.state())["checkpoint"])


TRAVELS = [
    nothing_but_a_run, an_update_of_the_subgraph, an_update_of_its_past, a_run_from_its_past, a_run_from_where_it_waits,
    an_answer_at_the_heads_id,
]  # fmt: skip


@pytest.mark.parametrize("graph", ["nested", "deep"])
@pytest.mark.parametrize("travel", TRAVELS)
async def test_below_the_root_it_is_what_langgraph_does_in_one_process(
    travellers: Travellers, travel: Callable[[Any], Awaitable[None]], graph: str
) -> None:
    remote, oracle = await travellers(graph)
    await travel(remote)
    await travel(oracle)
    assert normal(await remote.history()) == normal(await oracle.history())
    assert normal([await remote.state()]) == normal([await oracle.state()])


@pytest.mark.parametrize("graph", ["nested", "deep"])
async def test_an_answer_that_names_where_the_subgraph_waits_is_an_answer(travellers: Travellers, graph: str) -> None:
    """LangGraph in one process does the same, and notes the ancestors of the subgraph as those of the root, too."""
    remote, oracle = await travellers(graph)
    seen: list[list[Any]] = []
    for one in (remote, oracle):
        await an_answer_where_it_waits(one)
        seen.append(
            [(state["values"], state["next"], state["metadata"]["step"]) for state in normal(await one.history())]
        )
    assert seen[0] == seen[1]


async def test_a_subgraph_that_keeps_its_state_is_updated_in_its_own_namespace(travellers: Travellers) -> None:
    remote, oracle = await travellers("keeping")
    for one in (remote, oracle):
        await one.run({"count": 1})
        await one.resume("yes")
        await one.run({"count": 5})
        await one.update({"count": 77}, at=innermost(await one.state())["checkpoint"])
        await one.resume("again")
    assert normal(await remote.history("child")) == normal(await oracle.history("child"))
    assert normal(await remote.history()) == normal(await oracle.history())


async def test_a_state_of_a_subgraph_is_addressed_by_what_states_say_of_themselves(
    travellers: Travellers, sdk: LangGraphClient
) -> None:
    remote, _ = await travellers("deep")
    await remote.run({"count": 1})
    (outer,) = (await remote.state())["tasks"]
    (child,) = outer["state"]["tasks"]
    inner = child["state"]["checkpoint"]
    above = outer["state"]["checkpoint"]["checkpoint_ns"]
    assert set(inner["checkpoint_map"]) == {"", above, inner["checkpoint_ns"]}
    assert await remote.state(at=inner) == child["state"]
    (shown,) = (await sdk.threads.get_state(remote.id))["tasks"]
    assert shown["checkpoint"] == {"thread_id": remote.id, "checkpoint_ns": above}
    assert shown["state"] is None


async def test_the_past_shows_its_own_subgraphs(travellers: Travellers) -> None:
    remote, oracle = await travellers("nested")
    for one in (remote, oracle):
        await one.run({"count": 1})
        await one.resume("yes")
        await one.run({"count": 5})
    for mine, theirs in zip(await remote.history(), await oracle.history(), strict=True):
        shown = [await remote.state(at=mine["checkpoint"]), await oracle.state(at=theirs["checkpoint"])]
        assert normal(shown[:1]) == normal(shown[1:])


async def test_a_run_from_a_subgraphs_checkpoint_that_is_not_there_is_refused(
    travellers: Travellers, http: httpx.AsyncClient
) -> None:
    remote, _ = await travellers("nested")
    await remote.run({"count": 1})
    at = innermost(await remote.state())["checkpoint"]
    for status, says, checkpoint in (
        (404, "does not exist", at | {"checkpoint_id": "1ef4a9b8-e6fb-67b1-8001-abd5184439d1"}),
        (404, "no checkpoint in the namespace", {"checkpoint_ns": "child:x"}),
        (422, "checkpoint_map", at | {"checkpoint_map": {"": 3}}),
    ):
        body = {"assistant_id": "nested", "input": None, "checkpoint": checkpoint}
        response = await http.post(f"/threads/{remote.id}/runs", json=body)
        assert (response.status_code, says in response.json()["detail"]) == (status, True), response.text
    # Its ancestors need not be named: the checkpoint knows them.
    del at["checkpoint_map"]
    await remote.run(None, at=at)
    assert (await remote.history())[0]["metadata"]["source"] == "fork"


async def test_a_history_is_paged_with_every_form_of_before(
    travellers: Travellers, sdk: LangGraphClient, http: httpx.AsyncClient
) -> None:
    remote, _ = await travellers("line")
    await remote.run({"count": 1})
    await remote.resume("yes")
    whole = await remote.history()
    ids = [one["checkpoint"]["checkpoint_id"] for one in whole]
    assert len(ids) == 5
    second = whole[1]["checkpoint"]
    forms: list[Any] = [second["checkpoint_id"], second, {"configurable": second}]
    for form in forms:
        page = await sdk.threads.get_history(remote.id, limit=2, before=form)
        assert [one["checkpoint"]["checkpoint_id"] for one in page] == ids[2:4]
    got = await http.get(f"/threads/{remote.id}/history", params={"before": second["checkpoint_id"]})
    assert [one["checkpoint"]["checkpoint_id"] for one in got.json()] == ids[2:]
    page, seen = [], []
    while page := await sdk.threads.get_history(remote.id, limit=2, before=page[-1]["checkpoint"] if page else None):
        seen += [one["checkpoint"]["checkpoint_id"] for one in page]
    assert seen == ids
