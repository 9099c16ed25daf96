"""Runs without a thread of the caller."""

from tests.oracle.scenarios.scenario import scenario
from tests.oracle.speaking import Conversation


@scenario
async def stateless_runs(to: Conversation) -> None:
    runs = to.client.runs
    await to.say("wait", runs.wait(None, "steps", input={"count": 1}))
    await to.hear("stream", runs.stream(None, "steps", input={"count": 1}, stream_mode="updates"))
    created = await to.say("create", runs.create(None, "steps", input={"count": 1}))
    to.named(created["run_id"], "run")
    await to.say("asks", runs.wait(None, "asks", input={"count": 1}))
    await to.say("fails", runs.wait(None, "fails", input={"count": 1}))
    await to.say("unknown agent", runs.wait(None, "nope", input={}))


@scenario
async def stateless_runs_kept(to: Conversation) -> None:
    runs, threads = to.client.runs, to.client.threads
    created = await to.say("create", runs.create(None, "steps", input={"count": 1}, on_completion="keep"))
    thread, run = to.named(created["thread_id"], "thread"), to.named(created["run_id"], "run")
    await to.say("join", runs.join(thread, run))
    await to.say("thread", threads.get(thread))
    gone = await runs.create(None, "steps", input={"count": 1}, on_completion="delete")

    async def is_gone() -> bool:
        return (await to.http.get(f"/threads/{gone['thread_id']}")).status_code == 404

    await to.settled(is_gone)
    await to.say("gone", threads.get(gone["thread_id"]))


@scenario
async def stateless_batch(to: Conversation) -> None:
    payloads = [{"assistant_id": "steps", "input": {"count": number}} for number in (1, 2)]
    await to.say("batch", to.client.runs.create_batch(payloads))  # type: ignore[arg-type]
    await to.say("empty", to.client.runs.create_batch([]))
