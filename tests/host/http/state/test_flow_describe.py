"""What an assistant is made of, as its code says in a guest: graphs, schemas and subgraphs (S29)."""

import os
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk.client import LangGraphClient
from tests.host.http.state import agents
from tests.host.http.state.conftest import CHANGING
from tests.support.waiting import until

from agentvisor.core.errors import Unavailable
from agentvisor.host.app import Host
from agentvisor.host.config import load_config
from agentvisor.host.descriptions import Descriptions
from agentvisor.host.http.agents import assistant_id
from agentvisor.protocol.v1.guest_pb2 import Description

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


def drawn(graph: Any, *, xray: bool | int) -> dict[str, Any]:
    """As LangGraph draws it; of what implements a node the server tells the name alone."""
    shown = graph.compile().get_graph(xray=xray).to_json()
    for node in shown["nodes"]:
        node.get("data", {}).pop("id", None)
    return shown


async def test_a_graph_is_drawn_with_its_subgraphs_down_to_a_depth(sdk: LangGraphClient, host: Host) -> None:
    for graph, xray in (("line", False), ("deep", False), ("deep", True), ("deep", 1), ("deep", 2)):
        found: Any = await sdk.assistants.get_graph(assistant_id(graph), xray=xray)
        assert found == drawn(getattr(agents, graph), xray=xray), (graph, xray)
    names = {node["id"] for node in (await sdk.assistants.get_graph("deep", xray=True))["nodes"]}
    assert "outer:child:work" in names
    remote = await RemoteGraph("deep", url=host.url).aget_graph(xray=True)
    assert set(remote.nodes) == names
    assert [*remote.edges] == [*agents.deep.compile().get_graph(xray=True).edges]


async def test_schemas_say_what_a_graph_takes_gives_and_holds(sdk: LangGraphClient) -> None:
    schemas: Any = await sdk.assistants.get_schemas(assistant_id("line"))
    assert schemas["graph_id"] == "line"
    for name in ("input_schema", "output_schema", "state_schema"):
        properties = schemas[name]["properties"]
        assert properties["count"]["type"] == "integer", name
        assert (properties["log"]["type"], properties["log"]["items"]) == ("array", {"type": "string"}), name
    assert schemas["context_schema"]["properties"]["model"]["type"] == "string"
    assert schemas["config_schema"] == {}
    nested: Any = await sdk.assistants.get_schemas("nested")
    assert nested["context_schema"] is None


async def test_subgraphs_are_found_by_their_namespaces(sdk: LangGraphClient) -> None:
    async def found(namespace: str | None = None, *, recurse: bool = False) -> dict[str, Any]:
        return dict(await sdk.assistants.get_subgraphs(assistant_id("deep"), namespace, recurse))

    assert [*await found()] == ["outer"]
    assert sorted(await found(recurse=True)) == ["outer", "outer|child"]
    child = await found("outer|child", recurse=True)
    assert child["outer|child"]["state_schema"]["properties"]["count"]["type"] == "integer"
    assert await found("nobody") == {}
    assert await sdk.assistants.get_subgraphs("line") == {}


async def test_an_agent_of_another_framework_is_a_graph_with_one_node(sdk: LangGraphClient) -> None:
    graph = await sdk.assistants.get_graph("plain")
    assert [node["id"] for node in graph["nodes"]] == ["__start__", "plain", "__end__"]
    assert len(graph["edges"]) == 2
    schemas = await sdk.assistants.get_schemas("plain")
    assert (schemas["graph_id"], schemas["input_schema"]) == ("plain", None)
    assert await sdk.assistants.get_subgraphs("plain") == {}


async def test_an_agent_that_does_not_load_answers_with_its_traceback(http: httpx.AsyncClient) -> None:
    for part in ("graph", "schemas", "subgraphs"):
        response = await http.get(f"/assistants/broken/{part}")
        assert (response.status_code, response.json()["code"]) == (424, "agent_broken")
        assert "No module named 'no_such_module'" in response.json()["detail"]
        assert 'broken.py", line 1' in response.json()["metadata"]["traceback"]
    assert (await http.get("/assistants/nobody/graph")).status_code == 404
    for xray in ("0", "-1", "maybe", "101", "1.5", ""):
        response = await http.get("/assistants/line/graph", params={"xray": xray})
        assert (response.status_code, "xray must be" in response.json()["detail"]) == (422, True), xray


async def test_an_agent_that_hangs_is_given_up_and_its_process_ends(host: Host, folder: Path) -> None:
    config = load_config(folder, environ={}, overrides={"guest.operation_timeout": "2s"})
    impatient = Descriptions(host.guests, config)
    with pytest.raises(Unavailable, match=r"did not say what it is in 2 s \(guest\.operation_timeout\)"):
        await impatient.describe("hanging", Description(part=Description.PART_GRAPH))
    guest = psutil.Process(host.guests.pids()["hanging"])

    def none_but_the_zygote() -> bool:
        return len(guest.children(recursive=True)) <= 1

    await until(none_but_the_zygote)


async def test_what_is_known_of_an_agent_is_asked_anew_when_its_code_changes(
    sdk: LangGraphClient, host: Host, folder: Path
) -> None:
    async def nodes() -> list[str]:
        return [str(node["id"]) for node in (await sdk.assistants.get_graph("changing"))["nodes"]]

    code = folder / "changing.py"
    assert await nodes() == ["__start__", "before", "__end__"]
    code.write_text(CHANGING.format(node="after"))
    os.utime(code, ns=(1, 1))
    assert await nodes() == ["__start__", "after", "__end__"]
    # A file that it imports may have changed, too: the host is told so where it watches them.
    generation = host.guests.generation
    host.guests.reload()
    assert host.guests.generation == generation + 1
    assert await nodes() == ["__start__", "after", "__end__"]
