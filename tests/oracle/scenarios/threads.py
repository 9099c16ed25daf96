"""Threads: created, shown, changed, copied, pruned, deleted."""

from uuid import uuid4

from tests.oracle.scenarios.scenario import scenario
from tests.oracle.speaking import Conversation


@scenario
async def thread_lifecycle(to: Conversation) -> None:
    threads = to.client.threads
    created = await to.say("create", threads.create(metadata={"mark": to.mark, "n": 3, "deep": {"a": [1, None]}}))
    named = to.named(created["thread_id"], "thread")
    await to.say("get", threads.get(named))
    await to.say("update adds keys", threads.update(named, metadata={"n": 4, "new": True}))
    await to.say("update without metadata", threads.update(named, metadata={}))
    await to.say("get after updates", threads.get(named))
    await to.say("delete", threads.delete(named))
    await to.say("get deleted", threads.get(named))
    await to.say("update deleted", threads.update(named, metadata={"a": 1}))
    await to.say("delete again", threads.delete(named))
    await to.say("create again", threads.create(thread_id=named))


@scenario
async def thread_that_exists(to: Conversation) -> None:
    threads = to.client.threads
    named = await to.thread(metadata={"a": 1})
    await to.say("create again", threads.create(thread_id=named, metadata={"a": 2}))
    await to.say("raise", threads.create(thread_id=named, if_exists="raise"))
    await to.say("do nothing", threads.create(thread_id=named, metadata={"a": 2}, if_exists="do_nothing"))
    await to.say("get", threads.get(named))


@scenario
async def thread_created_with_a_graph(to: Conversation) -> None:
    threads = to.client.threads
    created = await to.say("create", threads.create(graph_id="steps"))
    named = to.named(created["thread_id"], "thread")
    await to.say("state", threads.get_state(named))
    await to.say("wait", to.client.runs.wait(named, "steps", input={"count": 1}))
    await to.say("get", threads.get(named))


@scenario
async def thread_ids(to: Conversation) -> None:
    threads = to.client.threads
    await to.say("upper case uuid", threads.get(str(uuid4()).upper()))
    await to.say("create not a uuid", threads.create(thread_id=f"mine-{to.mark}"))
    await to.say("get not a uuid", threads.get("not-a-uuid"))
    await to.say("delete not a uuid", threads.delete("not-a-uuid"))
    await to.say("run on not a uuid", to.client.runs.create("not-a-uuid", "steps", input={}))


@scenario
async def thread_after_runs(to: Conversation) -> None:
    named = await to.thread(metadata={"mark": to.mark})
    await to.say("wait", to.client.runs.wait(named, "steps", input={"count": 1}, metadata={"of": "run"}))
    await to.say("idle", to.client.threads.get(named))
    await to.say("fails", to.client.runs.wait(named, "fails", input={"count": 1}, raise_error=False))
    await to.say("error", to.client.threads.get(named))
    await to.say("asks", to.client.runs.wait(named, "asks", input={"count": 1}))
    await to.say("interrupted", to.client.threads.get(named))


@scenario
async def thread_copy(to: Conversation) -> None:
    threads, runs = to.client.threads, to.client.runs
    named = await to.thread(metadata={"mark": to.mark})
    await to.say("wait", runs.wait(named, "steps", input={"count": 1}))
    copied = await to.say("copy", threads.copy(named))
    copy = to.named(copied["thread_id"], "copy") if copied else ""
    await to.say("its state", threads.get_state(copy))
    await to.say("its runs", runs.list(copy))
    await to.say("run on the copy", runs.wait(copy, "steps", input={}))
    await to.say("the source stays", threads.get_state(named))
    await to.say("copy of nothing", threads.copy(str(uuid4())))
    asking = await to.thread("asking")
    await to.say("asks", runs.wait(asking, "asks", input={"count": 1}))
    second = await to.say("copy of a question", threads.copy(asking))
    other = to.named(second["thread_id"], "second copy") if second else ""
    await to.say("answer the copy", runs.wait(other, "asks", command={"resume": "yes"}))
    await to.say("the source still asks", threads.get_state(asking))


@scenario
async def thread_prune(to: Conversation) -> None:
    threads, runs = to.client.threads, to.client.runs
    kept, gone = await to.thread("kept"), await to.thread("gone")
    for named in (kept, gone):
        await runs.wait(named, "steps", input={"count": 1})
    await to.say("keep latest", threads.prune([kept], strategy="keep_latest"))
    await to.say("history of kept", threads.get_history(kept, limit=10))
    await to.say("delete", threads.prune([gone, str(uuid4())], strategy="delete"))
    await to.say("get gone", threads.get(gone))
    await to.say("bad strategy", threads.prune([kept], strategy="nope"))  # type: ignore[arg-type]


@scenario
async def thread_with_a_ttl(to: Conversation) -> None:
    threads = to.client.threads
    created = await to.say("create", threads.create(ttl=60))
    named = to.named(created["thread_id"], "thread") if created else ""
    await to.say("get with ttl", threads.get(named, include=["ttl"]))
    await to.say("update", threads.update(named, metadata={}, ttl={"ttl": 30, "strategy": "delete"}))


@scenario
async def thread_from_supersteps(to: Conversation) -> None:
    supersteps = [
        {"updates": [{"values": {"count": 7, "log": ["begun"]}, "as_node": "__start__"}]},
        {"updates": [{"values": {"log": ["worked elsewhere"]}, "as_node": "work"}]},
    ]
    threads = to.client.threads
    created = await to.say("create", threads.create(graph_id="steps", supersteps=supersteps))
    named = to.named(created["thread_id"], "thread") if created else ""
    await to.say("state", threads.get_state(named))
    await to.say("goes on", to.client.runs.wait(named, "steps", input=None))
