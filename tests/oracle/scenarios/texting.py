"""A second run while one is active, and what becomes of both."""

from tests.oracle.scenarios.scenario import scenario
from tests.oracle.speaking import Conversation


async def _second(to: Conversation, strategy: str | None) -> None:
    runs, threads = to.client.runs, to.client.threads
    thread, gate = await to.thread(), to.gate()
    first = await runs.create(thread, "slow", input={"count": 1, "log": ["first"], "gate": gate})
    to.named(first["run_id"], "first")
    await to.arrived(gate)
    more = {"multitask_strategy": strategy} if strategy else {}
    given = {"input": {"count": 10, "log": ["second"]}, **more}
    second = await to.say("second", runs.create(thread, "steps", **given))
    if strategy in ("interrupt", "rollback"):
        await to.settled(lambda: _left(to, thread, first["run_id"]))
    to.open(gate)
    if second:
        to.named(second["run_id"], "second")
        to.note("second ends", await to.ended(thread, second["run_id"]))
    elif strategy != "rollback":
        to.note("first ends", await to.ended(thread, first["run_id"]))
    await to.say("first", runs.get(thread, first["run_id"]))
    await to.say("state", threads.get_state(thread))
    await to.say("thread", threads.get(thread))
    await to.say("runs", runs.list(thread, select=["run_id", "status", "multitask_strategy"]))


async def _left(to: Conversation, thread: str, run: str) -> bool:
    """Whether the first run is not active any more."""
    found = {one["run_id"]: one["status"] for one in await to.client.runs.list(thread)}
    return found.get(run) not in ("pending", "running") or len(found) == 1


@scenario
async def second_run_by_default(to: Conversation) -> None:
    await _second(to, None)


@scenario
async def second_run_enqueued(to: Conversation) -> None:
    await _second(to, "enqueue")


@scenario
async def second_run_rejected(to: Conversation) -> None:
    await _second(to, "reject")


@scenario
async def second_run_interrupts(to: Conversation) -> None:
    await _second(to, "interrupt")


@scenario
async def second_run_rolls_back(to: Conversation) -> None:
    await _second(to, "rollback")


@scenario
async def pending_run_cancelled(to: Conversation) -> None:
    runs = to.client.runs
    thread, gate = await to.thread(), to.gate()
    first = await runs.create(thread, "slow", input={"count": 1, "gate": gate})
    await to.arrived(gate)
    second = await runs.create(thread, "steps", input={"count": 10})
    await to.say("pending", runs.get(thread, second["run_id"]))
    await to.say("cancel", runs.cancel(thread, second["run_id"], wait=True))
    await to.say("cancelled", runs.get(thread, second["run_id"]))
    to.open(gate)
    to.note("first", await to.ended(thread, first["run_id"]))
    await to.say("state", to.client.threads.get_state(thread))
