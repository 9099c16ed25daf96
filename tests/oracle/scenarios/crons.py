"""Runs by the clock."""

from uuid import uuid4

from tests.oracle.scenarios.scenario import scenario
from tests.oracle.speaking import Conversation

NEW_YEAR = "0 0 1 1 *"


@scenario
async def crons_of_no_thread(to: Conversation) -> None:
    crons = to.client.crons
    given = {"schedule": NEW_YEAR, "input": {"count": 1}, "metadata": {"mark": to.mark}}
    made = await to.say("create", crons.create("steps", **given))  # type: ignore[arg-type]
    named = to.named(made["cron_id"], "cron") if made else str(uuid4())
    await to.say("update", crons.update(named, schedule="0 0 2 1 *"))
    await to.say("disable", crons.update(named, enabled=False))
    await to.say("delete", crons.delete(named))
    await to.say("delete again", crons.delete(named))


@scenario
async def crons_of_a_thread(to: Conversation) -> None:
    crons = to.client.crons
    thread = await to.thread()
    made = await to.say("create", crons.create_for_thread(thread, "steps", schedule=NEW_YEAR, input={"count": 1}))
    named = to.named(made["cron_id"], "cron") if made else str(uuid4())
    await to.say("search", crons.search(thread_id=thread))
    await to.say("count", crons.count(thread_id=thread))
    await to.say("delete", crons.delete(named))
    await to.say("search after", crons.search(thread_id=thread))


@scenario
async def crons_refused(to: Conversation) -> None:
    crons = to.client.crons
    await to.say("bad schedule", crons.create("steps", schedule="now and then"))
    await to.say("unknown agent", crons.create("nope", schedule=NEW_YEAR))
    await to.say("unknown thread", crons.create_for_thread(str(uuid4()), "steps", schedule=NEW_YEAR))
    await to.say("update unknown", crons.update(str(uuid4()), enabled=False))
