"""Agent Protocol's names, and runs that come without a thread: many at once, and found by their own ids."""

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from tests.host.http.test_flow_threads import unique

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


async def test_a_run_without_a_thread_is_found_by_its_id(http: httpx.AsyncClient) -> None:
    body = {"assistant_id": "waiting", "input": {"count": 1}, "on_completion": "keep", "metadata": {"mark": unique()}}
    run = (await http.post("/runs", json=body)).json()["run_id"]
    assert (await http.get(f"/runs/{run}/wait")).json() == {"count": 2, "log": ["worked", "waited"]}
    assert (await http.get(f"/runs/{run}")).json()["status"] == "success"
    found = (await http.post("/runs/search", json={"metadata": body["metadata"], "status": "success"})).json()
    assert [one["run_id"] for one in found] == [run]
    events = await http.get(f"/runs/{run}/stream", headers={"Last-Event-ID": "-1"})
    assert "event: metadata" in events.text
    assert (await http.post(f"/runs/{run}/cancel")).status_code == 404
    assert (await http.delete(f"/runs/{run}")).status_code == 204
    assert (await http.get(f"/runs/{run}")).status_code == 404


async def test_agents_are_assistants(http: httpx.AsyncClient) -> None:
    [agent] = (await http.post("/agents/search", json={"name": "asking_at"})).json()
    assert (agent["name"], set(agent)) == (
        "asking_at_a_gate",
        {"agent_id", "name", "description", "metadata", "capabilities"},
    )
    assert (await http.get(f"/agents/{agent['agent_id']}")).json() == agent
    assert "input_schema" in (await http.get(f"/agents/{agent['agent_id']}/schemas")).json()


async def test_of_a_batch_with_one_that_is_refused_none_starts(http: httpx.AsyncClient, sdk: LangGraphClient) -> None:
    mark = {"mark": unique()}
    good = {"assistant_id": "waiting", "assistantId": "waiting", "input": {}, "metadata": mark, "on_completion": "keep"}
    for bad in ({"assistant_id": "nope"}, {"assistant_id": "waiting", "assistantId": "asking"}, {}, {"surprise": 1}):
        refused = await http.post("/runs/batch", json=[good, bad])
        assert refused.status_code == 422, refused.text
    answer = {"assistant_id": "waiting", "command": {"resume": 1}}
    large = {"assistant_id": "waiting", "input": {}, "metadata": {"large": "x" * 500_000}}
    for bad, status in ((answer, 409), (large, 413)):
        refused = await http.post("/runs/batch", json=[good, bad])
        assert refused.status_code == status, refused.text
    assert (await http.post("/runs/search", json={"metadata": mark})).json() == []
    made = (await http.post("/runs/batch", json=[good, good])).json()
    for one in made:
        await sdk.runs.join(one["thread_id"], one["run_id"])
    found = (await http.post("/runs/search", json={"metadata": mark})).json()
    assert {one["run_id"] for one in found} == {one["run_id"] for one in made}
