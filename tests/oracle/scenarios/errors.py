"""What is refused, and with which status."""

from uuid import uuid4

from tests.oracle.scenarios.scenario import scenario
from tests.oracle.speaking import Conversation


@scenario
async def errors_of_runs(to: Conversation) -> None:
    thread = await to.thread()
    bad: dict[str, object] = {
        "unknown agent": {"assistant_id": "nope", "input": {}},
        "unknown assistant": {"assistant_id": str(uuid4()), "input": {}},
        "no agent": {"input": {}},
        "unknown mode": {"assistant_id": "steps", "input": {}, "stream_mode": "nope"},
        "no modes": {"assistant_id": "steps", "input": {}, "stream_mode": []},
        "unknown strategy": {"assistant_id": "steps", "input": {}, "multitask_strategy": "nope"},
        "unknown durability": {"assistant_id": "steps", "input": {}, "durability": "nope"},
        "config that is none": {"assistant_id": "steps", "input": {}, "config": []},
        "command that is none": {"assistant_id": "steps", "command": []},
        "unknown field": {"assistant_id": "steps", "input": {}, "nope": 1},
        "metadata that is none": {"assistant_id": "steps", "input": {}, "metadata": 1},
        "negative after_seconds": {"assistant_id": "steps", "input": {}, "after_seconds": -1},
        "webhook that is none": {"assistant_id": "steps", "input": {}, "webhook": "nope"},
        "webhook to loopback": {"assistant_id": "steps", "input": {}, "webhook": "http://127.0.0.1:9/x"},
        "a list": [],
    }
    for what, body in bad.items():
        await to.request(what, "POST", f"/threads/{thread}/runs", json=body, body=False)
    await to.request("no JSON", "POST", f"/threads/{thread}/runs", content=b"{nope", body=False)
    await to.request("no body", "POST", f"/threads/{thread}/runs", body=False)
    thread = await to.thread("another")
    await to.say(
        "input that the graph refuses", to.client.runs.wait(thread, "steps", input={"nope": 1}, raise_error=False)
    )
    await to.say("input that is text", to.client.runs.wait(thread, "steps", input="text", raise_error=False))  # type: ignore[arg-type]


@scenario
async def errors_of_what_is_not_there(to: Conversation) -> None:
    runs, threads = to.client.runs, to.client.threads
    thread, missing, run = await to.thread(), str(uuid4()), str(uuid4())
    await to.say("thread", threads.get(missing))
    await to.say("runs of no thread", runs.create(missing, "steps", input={}))
    await to.say("run", runs.get(thread, run))
    await to.say("run of no thread", runs.get(missing, run))
    await to.say("join", runs.join(thread, run))
    await to.say("join of no thread", runs.join(missing, run))
    await to.hear("stream of no thread", runs.join_stream(missing, run))
    await to.request("no route", "GET", "/nope", body=False)
    await to.request("no method", "PUT", "/threads", body=False)
    await to.request("run id that is none", "GET", f"/threads/{thread}/runs/nope", body=False)


@scenario
async def errors_have_a_shape(to: Conversation) -> None:
    response = await to.http.get(f"/threads/{uuid4()}")
    body = response.json()
    to.note("404", isinstance(body.get("detail"), str) and bool(body["detail"]))
    response = await to.http.post("/threads", json={"metadata": 1})
    body = response.json()
    to.note("422", isinstance(body.get("detail"), str) and bool(body["detail"]))
