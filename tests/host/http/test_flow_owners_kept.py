"""Items and assistants are each owner's: another's are not there, whatever they are called and whoever asks."""

import asyncio
from uuid import uuid4

import pytest
from tests.host.http.test_flow_owners import KEYS, client, guarded

from agentvisor.core.errors import PermissionRefused
from agentvisor.host.app import Host
from agentvisor.langgraph import AgentVisorStore

__all__ = ["guarded"]  # the fixture

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


async def test_items_are_their_owners_over_http_and_grpc(guarded: Host) -> None:
    space = uuid4().hex
    for name in KEYS:
        async with client(guarded, name) as http:
            body = {"namespace": [space], "key": "k", "value": {"of": name}}
            assert (await http.put("/store/items", json=body)).status_code == 204
    async with client(guarded, "anna") as http:
        await http.put("/store/items", json={"namespace": [space, "annas"], "key": "k", "value": {}})

    def by_grpc(name: str) -> tuple[object, object]:
        store = AgentVisorStore(endpoint=guarded.url, api_key=KEYS[name])
        found = store.get((space,), "k")
        return (found.value if found else None), store.list_namespaces(prefix=(space,))

    for name in KEYS:
        listed = [[space], [space, "annas"]] if name == "anna" else [[space]]
        async with client(guarded, name) as http:
            item = (await http.get("/store/items", params={"namespace": space, "key": "k"})).json()
            found = (await http.post("/store/items/search", json={"namespace_prefix": [space]})).json()["items"]
            assert item["value"] == {"of": name}
            assert [one["value"] for one in found] == [{"of": name}, *({} for _ in listed[1:])]
            assert (await http.post("/store/namespaces", json={"prefix": [space]})).json()["namespaces"] == listed
        assert await asyncio.to_thread(by_grpc, name) == ({"of": name}, [tuple(one) for one in listed])
    with pytest.raises(PermissionRefused):
        await asyncio.to_thread(AgentVisorStore(endpoint=guarded.url, api_key="wrong").get, (space,), "k")


async def test_assistants_are_their_owners(guarded: Host) -> None:
    async with client(guarded, "anna") as hers, client(guarded, "bert") as his:
        made = (await hers.post("/assistants", json={"graph_id": "plain", "metadata": {"mark": "m"}})).json()
        path = f"/assistants/{made['assistant_id']}"
        for method, more, body in (
            ("GET", "", None),
            ("PATCH", "", {"name": "his"}),
            ("DELETE", "", None),
            ("POST", "/versions", {}),
            ("POST", "/latest", {"version": 1}),
        ):
            assert (await his.request(method, f"{path}{more}", json=body)).status_code == 404, (method, more)
        started = await his.post("/runs/wait", json={"assistant_id": made["assistant_id"], "input": {}})
        assert started.status_code == 404
        for about in ({"metadata": {"mark": "m"}}, {"name": made["name"]}):
            assert (await his.post("/assistants/search", json=about)).json() == []
            assert (await his.post("/assistants/count", json=about)).json() == 0
        # The same id can be his, too; and what he makes of an agent's own is not hers.
        his_own = await his.post("/assistants", json={"graph_id": "plain", "assistant_id": made["assistant_id"]})
        assert his_own.json()["metadata"] == {}
        await his.patch("/assistants/plain", json={"name": "his plain"})
        assert (await hers.get("/assistants/plain")).json()["name"] == "plain"
        assert (await hers.get(path)).json() == made
        assert (await hers.post(f"{path}/versions", json={})).json()[0]["version"] == 1
