"""Runs of a thread: started, awaited, joined, listed, cancelled, deleted."""

from collections.abc import Awaitable
from uuid import uuid4

from tests.oracle.scenarios.scenario import scenario
from tests.oracle.speaking import Conversation


@scenario
async def run_in_the_background(to: Conversation) -> None:
    runs = to.client.runs
    thread = await to.thread()
    given = {"input": {"count": 1}, "metadata": {"mark": to.mark}, "config": {"tags": ["t"]}}
    run = await to.say("create", runs.create(thread, "steps", **given))
    named = to.named(run["run_id"], "run")
    await to.say("join", runs.join(thread, named))
    await to.say("get", runs.get(thread, named))
    await to.say("join again", runs.join(thread, named))
    await to.say("state", to.client.threads.get_state(thread))


@scenario
async def runs_listed(to: Conversation) -> None:
    runs = to.client.runs
    thread = await to.thread()
    for number, agent in enumerate(("steps", "fails", "asks")):
        run = await runs.create(thread, agent, input={"count": number}, metadata={"n": number})
        to.named(run["run_id"], f"run {number}")
        await to.ended(thread, run["run_id"])
    ids = ["run_id"]
    await to.say("all", runs.list(thread))
    await to.say("first page", runs.list(thread, limit=2, select=ids))
    await to.say("second page", runs.list(thread, limit=2, offset=2, select=ids))
    for status in ("pending", "running", "success", "error", "timeout", "interrupted"):
        await to.say(status, runs.list(thread, status=status, select=ids))  # type: ignore[arg-type]
    await to.say("select", runs.list(thread, select=["status", "metadata", "thread_id"], limit=1))
    await to.say("of no thread", runs.list(str(uuid4())))
    for what, query in {"bad status": "status=nope", "bad select": "select=nope", "limit 0": "limit=0",
                        "limit 1001": "limit=1001", "bad offset": "offset=-1"}.items():  # fmt: skip
        await to.request(what, "GET", f"/threads/{thread}/runs?{query}", body=False)


@scenario
async def run_awaited(to: Conversation) -> None:
    runs = to.client.runs
    thread = await to.thread()
    await to.say("wait", runs.wait(thread, "steps", input={"count": 1}))
    await to.say("goes on", runs.wait(thread, "steps", input={}))
    await to.say("no input", runs.wait(thread, "steps"))
    await to.say("fails", runs.wait(thread, "fails", input={"count": 1}))
    await to.say("fails, as values", runs.wait(thread, "fails", input={"count": 1}, raise_error=False))
    await to.say("goes on after a failure", runs.wait(thread, "steps", input={"count": 9}))
    await to.say("messages", runs.wait(thread, "chat", input={"messages": [{"role": "user", "content": "hi"}]}))


@scenario
async def run_that_is_given_much(to: Conversation) -> None:
    runs = to.client.runs
    thread = await to.thread()
    config = {"configurable": {"color": "red"}, "tags": ["one"], "recursion_limit": 7}
    await to.say("config", runs.wait(thread, "tells", input={}, config=config))
    await to.say("context", runs.wait(thread, "tells", input={}, context={"user": "ann"}))
    await to.say("neither", runs.wait(thread, "tells", input={}))
    both = {"config": {"configurable": {"color": "red"}}, "context": {"user": "ann"}}
    await to.say("both", runs.wait(await to.thread("another"), "tells", input={}, **both))
    low = {"recursion_limit": 1}
    await to.say("recursion limit", runs.wait(thread, "steps", input={"count": 1}, config=low, raise_error=False))
    for durability in ("sync", "async", "exit"):
        await to.say(f"durability {durability}", runs.wait(thread, "steps", input={"count": 1}, durability=durability))  # type: ignore[arg-type]
    await to.say("checkpoint_during", runs.wait(thread, "steps", input={"count": 1}, checkpoint_during=False))


@scenario
async def run_on_no_thread_yet(to: Conversation) -> None:
    runs, threads = to.client.runs, to.client.threads
    missing = to.named(str(uuid4()), "missing")
    await to.say("rejected", runs.create(missing, "steps", input={}))
    await to.say("rejected by name", runs.wait(missing, "steps", input={}, if_not_exists="reject"))
    await to.say("still not there", threads.get(missing))
    given = {"input": {"count": 1}, "metadata": {"a": 1}, "if_not_exists": "create"}
    await to.say("created", runs.wait(missing, "steps", **given))
    await to.say("is there", threads.get(missing))


@scenario
async def run_cancelled(to: Conversation) -> None:
    runs, threads = to.client.runs, to.client.threads
    thread, gate = await to.thread(), to.gate()
    run = await runs.create(thread, "slow", input={"count": 1, "gate": gate})
    named = to.named(run["run_id"], "run")
    await to.arrived(gate)
    await to.say("busy", threads.get(thread))
    await to.say("running", runs.get(thread, named))
    await to.say("cancel and wait", runs.cancel(thread, named, wait=True))
    await to.say("cancelled", runs.get(thread, named))
    await to.say("interrupted", threads.get(thread))
    await to.say("state", threads.get_state(thread))
    await to.say("cancel again", runs.cancel(thread, named))
    await to.say("join cancelled", runs.join(thread, named))
    to.open(gate)
    await to.say("goes on", runs.wait(thread, "slow", input={"count": 5}))


@scenario
async def run_cancelled_without_waiting(to: Conversation) -> None:
    runs = to.client.runs
    thread, gate = await to.thread(), to.gate()
    run = await runs.create(thread, "slow", input={"count": 1, "gate": gate})
    named = to.named(run["run_id"], "run")
    await to.arrived(gate)
    await to.request("cancel", "POST", f"/threads/{thread}/runs/{named}/cancel")
    to.note("status", await to.ended(thread, named))
    to.open(gate)
    await to.say("bad action", runs.cancel(thread, named, action="nope"))  # type: ignore[arg-type]
    await to.say("unknown run", runs.cancel(thread, str(uuid4())))
    await to.say("unknown thread", runs.cancel(str(uuid4()), named))


@scenario
async def run_rolled_back(to: Conversation) -> None:
    runs, threads = to.client.runs, to.client.threads
    thread, gate = await to.thread(), to.gate()
    await runs.wait(thread, "steps", input={"count": 1})
    run = await runs.create(thread, "slow", input={"count": 10, "gate": gate})
    named = to.named(run["run_id"], "run")
    await to.arrived(gate)
    if await to.say("cancel", _done(runs.cancel(thread, named, wait=True, action="rollback"))) is None:
        await runs.cancel(thread, named, wait=True)
    to.open(gate)
    await to.say("is gone", runs.get(thread, named))
    await to.say("state as before", threads.get_state(thread))
    await to.say("thread", threads.get(thread))


@scenario
async def runs_cancelled_together(to: Conversation) -> None:
    runs, threads = to.client.runs, to.client.threads
    thread, gate = await to.thread(), to.gate()
    first = await runs.create(thread, "slow", input={"count": 1, "gate": gate})
    second = await runs.create(thread, "steps", input={"count": 1})
    await to.arrived(gate)
    if await to.say("cancel", _done(runs.cancel_many(thread_id=thread, run_ids=[first["run_id"], second["run_id"]]))):
        await to.ended(thread, first["run_id"])
    to.open(gate)
    to.note("first", await to.ended(thread, first["run_id"]))
    to.note("second", await to.ended(thread, second["run_id"]))
    await to.say("of no runs", runs.cancel_many(thread_id=thread, run_ids=[str(uuid4())]))
    await to.say("both ways", runs.cancel_many(thread_id=thread, status="all"))
    await to.say("bad status", runs.cancel_many(status="nope"))  # type: ignore[arg-type]
    await to.say("thread", threads.get(thread))


async def _done(asked: Awaitable[None]) -> bool:
    await asked
    return True


@scenario
async def run_deleted(to: Conversation) -> None:
    runs = to.client.runs
    thread, gate = await to.thread(), to.gate()
    done = await runs.create(thread, "steps", input={"count": 1})
    await to.ended(thread, done["run_id"])
    live = await runs.create(thread, "slow", input={"count": 1, "gate": gate})
    await to.arrived(gate)
    await to.say("delete", runs.delete(thread, done["run_id"]))
    await to.say("get", runs.get(thread, done["run_id"]))
    await to.say("delete again", runs.delete(thread, done["run_id"]))
    await to.say("delete a live one", runs.delete(thread, live["run_id"]))
    await to.settled(lambda: _has_no_run(to, thread))
    to.open(gate)
    await to.say("list", runs.list(thread, select=["status"]))
    await to.say("unknown", runs.delete(thread, str(uuid4())))


async def _has_no_run(to: Conversation, thread: str) -> bool:
    """Whether a live run that was deleted is out of the list: with us once its attempt is over."""
    return not await to.client.runs.list(thread)


@scenario
async def run_that_starts_later(to: Conversation) -> None:
    runs = to.client.runs
    thread = await to.thread()
    run = await to.say("create", runs.create(thread, "steps", input={"count": 1}, after_seconds=1))
    named = to.named(run["run_id"], "run") if run else ""
    await to.say("pending", runs.get(thread, named))
    await to.say("busy", to.client.threads.get(thread))
    await to.say("join", runs.join(thread, named))
