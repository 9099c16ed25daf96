"""Questions answered, and runs steered by commands."""

from tests.oracle.scenarios.scenario import scenario
from tests.oracle.speaking import Conversation


@scenario
async def question_answered(to: Conversation) -> None:
    runs, threads = to.client.runs, to.client.threads
    thread = await to.thread()
    await to.say("asks", runs.wait(thread, "asks", input={"count": 1}))
    await to.say("state", threads.get_state(thread))
    await to.say("thread", threads.get(thread))
    await to.say("answer", runs.wait(thread, "asks", command={"resume": "yes"}))
    await to.say("state after", threads.get_state(thread))
    await to.say("thread after", threads.get(thread))
    await to.say("history", threads.get_history(thread, limit=20))
    await to.say("runs", runs.list(thread, select=["status"]))


@scenario
async def question_given_up(to: Conversation) -> None:
    runs = to.client.runs
    thread = await to.thread()
    await runs.wait(thread, "asks", input={"count": 1})
    await to.say("new input", runs.wait(thread, "asks", input={"count": 5}))
    await to.say("no input", runs.wait(thread, "asks", input=None))


@scenario
async def several_questions(to: Conversation) -> None:
    runs, threads = to.client.runs, to.client.threads
    thread = await to.thread()
    asked = await to.say("asks", runs.wait(thread, "asks_two", input={"count": 1}))
    await to.say("state", threads.get_state(thread))
    ids = {one["value"]: one["id"] for one in asked["__interrupt__"]}
    await to.say("without an id", runs.wait(thread, "asks_two", command={"resume": "both"}, raise_error=False))
    await to.say("one", runs.wait(thread, "asks_two", command={"resume": {ids["left?"]: "l"}}))
    await to.say("the other", runs.wait(thread, "asks_two", command={"resume": {ids["right?"]: "r"}}))
    await to.say("state after", threads.get_state(thread))


@scenario
async def both_answered_at_once(to: Conversation) -> None:
    runs = to.client.runs
    thread = await to.thread()
    asked = await runs.wait(thread, "asks_two", input={"count": 1})
    ids = {one["value"]: one["id"] for one in asked["__interrupt__"]}
    both = {ids["left?"]: "l", ids["right?"]: "r"}
    answered = await to.say("answer", runs.wait(thread, "asks_two", command={"resume": both}))
    to.note("log", sorted(answered["log"]) if answered else None)


@scenario
async def answers_to_nothing(to: Conversation) -> None:
    runs = to.client.runs
    thread = await to.thread()
    await to.say("nothing has run", runs.wait(thread, "asks", command={"resume": "yes"}, raise_error=False))
    await runs.wait(thread, "steps", input={"count": 1})
    await to.say("nothing asks", runs.wait(thread, "steps", command={"resume": "yes"}, raise_error=False))
    other = await to.thread("other")
    await runs.wait(other, "asks", input={"count": 1})
    await to.say("unknown id", runs.wait(other, "asks", command={"resume": {"0" * 32: "yes"}}, raise_error=False))


@scenario
async def command_goto_and_update(to: Conversation) -> None:
    runs = to.client.runs
    thread = await to.thread()
    await runs.wait(thread, "routes", input={"count": 0})
    await to.say("goto", runs.wait(thread, "routes", command={"goto": "right"}))
    await to.say("update", runs.wait(thread, "routes", command={"update": {"log": ["told"]}}))
    await to.say("both", runs.wait(thread, "routes", command={"goto": "left", "update": {"log": ["told"]}}))
    sent = {"node": "left", "input": {"count": 5}}
    await to.say("send", runs.wait(thread, "routes", command={"goto": sent}))
    await to.say("unknown node", runs.wait(thread, "routes", command={"goto": "nope"}, raise_error=False))
    pairs = [["log", ["pair"]]]
    await to.say("update by pairs", runs.wait(thread, "routes", command={"update": pairs}))


@scenario
async def stopped_before_and_after(to: Conversation) -> None:
    runs, threads = to.client.runs, to.client.threads
    thread = await to.thread()
    await to.say("before", runs.wait(thread, "steps", input={"count": 1}, interrupt_before=["done"]))
    await to.say("state before", threads.get_state(thread))
    await to.say("thread before", threads.get(thread))
    await to.say("goes on", runs.wait(thread, "steps", input=None))
    await to.say("after", runs.wait(thread, "steps", input={"count": 1}, interrupt_after=["work"]))
    await to.say("goes on again", runs.wait(thread, "steps", input=None))
    await to.say("everywhere", runs.wait(thread, "steps", input={"count": 1}, interrupt_before="*"))
    await to.say("unknown node", runs.wait(thread, "steps", input={"count": 1}, interrupt_before=["nope"]))
