"""Methods of assistants."""

from uuid import uuid4

import pytest
from langgraph_sdk.errors import NotFoundError
from tests.host.http.sdk.table import Client, of


@of("assistants.get")
async def get(client: Client) -> None:
    named = await client.assistant("asking")
    found = await client.assistants.get(named)
    assert (found["assistant_id"], found["graph_id"]) == (named, "asking")


@of("assistants.search")
async def search(client: Client) -> None:
    found = await client.assistants.search(graph_id="asking", metadata={"created_by": "system"}, select=["graph_id"])
    assert found == [{"graph_id": "asking"}]
    page = await client.assistants.search(limit=1, response_format="object")
    assert (len(page["assistants"]), page["next"]) == (1, "1")


@of("assistants.count")
async def count(client: Client) -> None:
    assert await client.assistants.count(graph_id="asking", metadata={"created_by": "system"}) == 1


@of("assistants.get_graph")
async def get_graph(client: Client) -> None:
    graph = await client.assistants.get_graph(await client.assistant("asking"))
    assert {one["id"] for one in graph["nodes"]} == {"__start__", "work", "ask", "__end__"}
    assert {"source": "work", "target": "ask"}.items() <= graph["edges"][1].items()


@of("assistants.get_schemas")
async def get_schemas(client: Client) -> None:
    schemas = await client.assistants.get_schemas(await client.assistant("asking"))
    assert schemas["graph_id"] == "asking"
    assert {"count", "log"} <= schemas["input_schema"]["properties"].keys()  # type: ignore[index]


@of("assistants.get_subgraphs")
async def get_subgraphs(client: Client) -> None:
    subgraphs = await client.assistants.get_subgraphs(await client.assistant("nested"))
    assert subgraphs.keys() == {"child"}


@of("assistants.create")
async def create(client: Client) -> None:
    named = str(uuid4())
    config = {"recursion_limit": 1}
    await client.assistants.create("waiting", config, assistant_id=named, metadata=client.mark, name="mine")  # type: ignore[arg-type]
    found = await client.assistants.get(named)
    assert (found["graph_id"], found["name"], found["version"]) == ("waiting", "mine", 1)
    failed = await client.runs.wait(None, named, input={"count": 1}, raise_error=False)
    assert failed["__error__"]["error"] == "GraphRecursionError"  # type: ignore[call-overload]


@of("assistants.update")
async def update(client: Client) -> None:
    named = (await client.assistants.create("waiting", metadata=client.mark))["assistant_id"]
    await client.assistants.update(named, graph_id="asking", name="other")
    found = await client.assistants.get(named)
    assert (found["graph_id"], found["name"], found["version"]) == ("asking", "other", 2)
    asked = await client.runs.wait(None, named, input={"count": 1})
    assert "__interrupt__" in asked


@of("assistants.delete")
async def delete(client: Client) -> None:
    named = (await client.assistants.create("waiting", metadata=client.mark))["assistant_id"]
    await client.assistants.delete(named)
    with pytest.raises(NotFoundError):
        await client.assistants.get(named)


@of("assistants.get_versions")
async def get_versions(client: Client) -> None:
    named = (await client.assistants.create("waiting", name="first"))["assistant_id"]
    await client.assistants.update(named, name="second")
    versions = await client.assistants.get_versions(named)
    assert [(one["version"], one["name"]) for one in versions] == [(2, "second"), (1, "first")]


@of("assistants.set_latest")
async def set_latest(client: Client) -> None:
    named = (await client.assistants.create("waiting", name="first"))["assistant_id"]
    await client.assistants.update(named, name="second")
    await client.assistants.set_latest(named, 1)
    found = await client.assistants.get(named)
    assert (found["version"], found["name"]) == (1, "first")
