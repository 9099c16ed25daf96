"""States of threads: read, written, and their history."""

from uuid import uuid4

from tests.oracle.scenarios.scenario import scenario
from tests.oracle.speaking import Conversation


@scenario
async def state_read(to: Conversation) -> None:
    threads, runs = to.client.threads, to.client.runs
    thread = await to.thread()
    await to.say("before any run", threads.get_state(thread))
    await runs.wait(thread, "steps", input={"count": 1})
    state = await to.say("state", threads.get_state(thread))
    history = await threads.get_history(thread, limit=10)
    for number, one in enumerate(reversed(history)):
        to.named(one["checkpoint"]["checkpoint_id"], f"checkpoint {number}")
    await to.say("history", threads.get_history(thread, limit=10))
    middle = history[1]["checkpoint"]
    await to.say("by id", threads.get_state(thread, checkpoint_id=middle["checkpoint_id"]))
    await to.say("by checkpoint", threads.get_state(thread, checkpoint=middle))
    await to.say("latest by checkpoint", threads.get_state(thread, checkpoint=state["checkpoint"]))
    await to.say("with subgraphs", threads.get_state(thread, subgraphs=True))
    await to.say("unknown checkpoint", threads.get_state(thread, checkpoint_id=str(uuid4())))
    await to.say("a bad checkpoint", threads.get_state(thread, checkpoint_id="nope"))
    await to.say("unknown thread", threads.get_state(str(uuid4())))
    # LangGraph's JavaScript client has a method for it.
    await to.request("patched", "PATCH", f"/threads/{thread}/state", json={"metadata": {"a": 1}}, body=False)


@scenario
async def history_paged(to: Conversation) -> None:
    threads, runs = to.client.threads, to.client.runs
    thread = await to.thread()
    for count in (1, 10):
        await runs.wait(thread, "steps", input={"count": count}, metadata={"of": count})
    history = await threads.get_history(thread, limit=20)
    to.note("how many", len(history))
    for number, one in enumerate(reversed(history)):
        to.named(one["checkpoint"]["checkpoint_id"], f"checkpoint {number}")
    await to.say("default limit", threads.get_history(thread))
    await to.say("limit 1", threads.get_history(thread, limit=1))
    third = history[2]
    for what, before in {
        "an id": third["checkpoint"]["checkpoint_id"],
        "a checkpoint": third["checkpoint"],
        "a config": {"configurable": third["checkpoint"]},
    }.items():
        await to.say(f"before {what}", threads.get_history(thread, limit=2, before=before))  # type: ignore[arg-type]
    await to.say("by metadata", threads.get_history(thread, limit=10, metadata={"source": "input"}))
    await to.say("by step", threads.get_history(thread, limit=10, metadata={"step": 1}))
    await to.say("by nothing", threads.get_history(thread, limit=10, metadata={"nope": 1}))
    await to.say("of no thread", threads.get_history(str(uuid4())))
    for limit in (0, 1001):
        await to.say(f"limit {limit}", threads.get_history(thread, limit=limit))
    await to.request("no body", "POST", f"/threads/{thread}/history", json={})
    await to.request("by GET", "GET", f"/threads/{thread}/history?limit=2")


@scenario
async def state_of_subgraphs(to: Conversation) -> None:
    threads, runs = to.client.threads, to.client.runs
    thread = await to.thread()
    await runs.wait(thread, "nested", input={"count": 1})
    await to.say("state", threads.get_state(thread))
    state = await to.say("with subgraphs", threads.get_state(thread, subgraphs=True))
    inner = (state["tasks"][0].get("state") or {}).get("checkpoint") if state and state["tasks"] else None
    if inner:
        await to.say("inner", threads.get_state(thread, checkpoint=inner))
        within = {"checkpoint_ns": inner["checkpoint_ns"]}
        await to.say("inner history", threads.get_history(thread, limit=5, checkpoint=within))  # type: ignore[arg-type]
    await to.say("resume", runs.wait(thread, "nested", command={"resume": "yes"}))
    await to.say("state after", threads.get_state(thread, subgraphs=True))


@scenario
async def state_updated(to: Conversation) -> None:
    threads, runs = to.client.threads, to.client.runs
    thread = await to.thread()
    await runs.wait(thread, "steps", input={"count": 1})
    await to.say("update", threads.update_state(thread, {"count": 50}))
    await to.say("state", threads.get_state(thread))
    await to.say("as a node", threads.update_state(thread, {"log": ["told"]}, as_node="work"))
    await to.say("is next", threads.get_state(thread))
    await to.say("goes on", runs.wait(thread, "steps", input=None))
    await to.say("unknown node", threads.update_state(thread, {"count": 1}, as_node="nope"))
    await to.say("nothing", threads.update_state(thread, None))
    await to.say("several", threads.update_state(thread, [{"log": ["a"]}, {"log": ["b"]}]))  # type: ignore[arg-type]
    await to.say("unknown thread", threads.update_state(str(uuid4()), {"count": 1}))
    await to.say("history", threads.get_history(thread, limit=20))


@scenario
async def state_updated_before_any_run(to: Conversation) -> None:
    threads = to.client.threads
    thread = await to.thread()
    await to.say("without a graph", threads.update_state(thread, {"count": 50}))
    known = await to.thread("known", graph_id="steps")
    await to.say("with a graph", threads.update_state(known, {"count": 50}))
    await to.say("state", threads.get_state(known))


@scenario
async def state_forked(to: Conversation) -> None:
    threads, runs = to.client.threads, to.client.runs
    thread = await to.thread()
    await runs.wait(thread, "steps", input={"count": 1})
    history = await threads.get_history(thread, limit=10)
    before_work = next(one for one in history if one["next"] == ["work"])["checkpoint"]
    await to.say("replay", runs.wait(thread, "steps", input=None, checkpoint_id=before_work["checkpoint_id"]))
    forked = await to.say(
        "fork", threads.update_state(thread, {"count": 70}, checkpoint_id=before_work["checkpoint_id"])
    )
    await to.say("state of the fork", threads.get_state(thread))
    if forked:
        await to.say("run the fork", runs.wait(thread, "steps", input=None, checkpoint=forked["checkpoint"]))
    await to.say(
        "run from an unknown one", runs.wait(thread, "steps", input=None, checkpoint_id=str(uuid4()), raise_error=False)
    )
    await to.say("history", threads.get_history(thread, limit=20))


@scenario
async def state_updated_while_busy(to: Conversation) -> None:
    threads, runs = to.client.threads, to.client.runs
    thread, gate = await to.thread(), to.gate()
    run = await runs.create(thread, "slow", input={"count": 1, "gate": gate})
    await to.arrived(gate)
    await to.say("update", threads.update_state(thread, {"count": 50}))
    to.open(gate)
    to.note("run", await to.ended(thread, run["run_id"]))


@scenario
async def state_of_a_subgraph_updated(to: Conversation) -> None:
    threads, runs = to.client.threads, to.client.runs
    thread = await to.thread()
    await runs.wait(thread, "nested", input={"count": 1})
    state = await threads.get_state(thread, subgraphs=True)
    inner = state["tasks"][0]["state"]["checkpoint"]  # type: ignore[index]
    await to.say("update", threads.update_state(thread, {"log": ["inside"]}, checkpoint=inner))
    await to.say("inner", threads.get_state(thread, subgraphs=True))
    await to.say("resume", runs.wait(thread, "nested", command={"resume": "yes"}))
