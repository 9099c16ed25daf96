"""Assistants: those of the graphs, and those that a client makes."""

from uuid import uuid4

from tests.oracle.scenarios.scenario import scenario
from tests.oracle.speaking import Conversation

NAMES = ("asks", "asks_two", "chat", "fails", "nested", "routes", "slow", "steps", "tells")


@scenario
async def assistants_of_graphs(to: Conversation) -> None:
    assistants = to.client.assistants
    system = {"created_by": "system"}
    found = await to.say("search", assistants.search(graph_id="steps", metadata=system))
    named = found[0]["assistant_id"]
    await to.say("get", assistants.get(named))
    by = {"sort_by": "name", "sort_order": "asc"}
    everybody = await assistants.search(metadata=system, limit=50, **by)  # type: ignore[arg-type]
    to.note("all", [one["name"] for one in everybody])
    await to.say("select", assistants.search(graph_id="steps", metadata=system, select=["name", "graph_id"]))
    await to.say("by name", assistants.search(name="steps", metadata=system, select=["name"]))
    await to.say("unknown", assistants.get(str(uuid4())))
    await to.say("by the graph's name", assistants.get("steps"))
    await to.say("count", assistants.count(metadata=system))
    await to.say("count of one", assistants.count(graph_id="steps", metadata=system))
    for offset in (0, 6):
        body = {"metadata": system, "limit": 5, "offset": offset, "select": ["name"], **by}
        pages = ("x-pagination-total", "x-pagination-next")
        await to.request(f"page at {offset}", "POST", "/assistants/search", headers=pages, json=body)


@scenario
async def assistants_looked_into(to: Conversation) -> None:
    assistants = to.client.assistants
    ids = {one["graph_id"]: one["assistant_id"] for one in await assistants.search(limit=50)}
    for name in ("steps", "nested", "routes"):
        await to.say(f"graph of {name}", assistants.get_graph(ids[name]))
    await to.say("graph with subgraphs", assistants.get_graph(ids["nested"], xray=True))
    await to.say("graph to a depth", assistants.get_graph(ids["nested"], xray=1))
    await to.say("schemas", assistants.get_schemas(ids["steps"]))
    await to.say("schemas with context", assistants.get_schemas(ids["tells"]))
    await to.say("subgraphs", assistants.get_subgraphs(ids["nested"]))
    await to.say("subgraphs, recursive", assistants.get_subgraphs(ids["nested"], recurse=True))
    await to.say("one subgraph", assistants.get_subgraphs(ids["nested"], namespace="child"))
    await to.say("no subgraphs", assistants.get_subgraphs(ids["steps"]))
    for what in ("graph", "schemas", "subgraphs"):
        await to.request(f"{what} of an unknown one", "GET", f"/assistants/{uuid4()}/{what}")
    await to.say("by the graph's name", assistants.get_graph("steps"))


@scenario
async def assistants_made(to: Conversation) -> None:
    assistants, runs = to.client.assistants, to.client.runs
    config = {"configurable": {"color": "red"}, "tags": ["mine"]}
    given = {"config": config, "metadata": {"mark": to.mark}, "name": "mine", "description": "of mine"}
    made = await to.say("create", assistants.create("tells", **given))  # type: ignore[arg-type]
    named = to.named(made["assistant_id"], "assistant") if made else str(uuid4())
    thread = await to.thread()
    await to.say("run", runs.wait(thread, named, input={}))
    await to.say("run with more", runs.wait(thread, named, input={}, config={"configurable": {"color": "blue"}}))
    await to.say("thread", to.client.threads.get(thread))
    changed = {"config": {"configurable": {"color": "green"}}, "metadata": {"more": 1}}
    await to.say("update", assistants.update(named, **changed))  # type: ignore[arg-type]
    await to.say("run changed", runs.wait(thread, named, input={}))
    await to.say("versions", assistants.get_versions(named))
    await to.say("back to 1", assistants.set_latest(named, 1))
    await to.say("run as at first", runs.wait(thread, named, input={}))
    await to.say("search", assistants.search(metadata={"mark": to.mark}))
    await to.say("count", assistants.count(metadata={"mark": to.mark}))
    await to.say("unknown version", assistants.set_latest(named, 99))
    await to.say("delete", assistants.delete(named))
    await to.say("get deleted", assistants.get(named))
    await to.say("run deleted", runs.wait(thread, named, input={}))


@scenario
async def assistants_refused(to: Conversation) -> None:
    assistants = to.client.assistants
    mine = to.named(str(uuid4()), "assistant")
    await to.say("create", assistants.create("steps", assistant_id=mine))
    await to.say("exists", assistants.create("steps", assistant_id=mine))
    await to.say("exists, do nothing", assistants.create("steps", assistant_id=mine, if_exists="do_nothing"))
    await to.say("unknown graph", assistants.create("nope"))
    await to.say("update unknown", assistants.update(str(uuid4()), metadata={"a": 1}))
    await to.say("delete unknown", assistants.delete(str(uuid4())))
    await to.say("with context", assistants.create("tells", context={"user": "ann"}))
    both = {"config": {"configurable": {"color": "red"}}, "context": {"user": "ann"}}
    await to.say("with both", assistants.create("tells", **both))  # type: ignore[arg-type]
