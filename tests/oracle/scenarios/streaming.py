"""Runs as streams of events."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

from tests.oracle.scenarios.scenario import scenario
from tests.oracle.speaking import Conversation

HELLO = {"messages": [{"role": "user", "content": "hi", "id": "question"}]}


async def _mode(to: Conversation, mode: str, agent: str = "steps", **more: object) -> None:
    thread = await to.thread()
    given = {"input": {"count": 1}, **more}
    await to.hear(f"{mode} of {agent}", to.client.runs.stream(thread, agent, stream_mode=mode, **given))  # type: ignore[call-overload]


@scenario
async def stream_values(to: Conversation) -> None:
    await _mode(to, "values")


@scenario
async def stream_updates(to: Conversation) -> None:
    await _mode(to, "updates")


@scenario
async def stream_custom(to: Conversation) -> None:
    await _mode(to, "custom")


@scenario
async def stream_tasks(to: Conversation) -> None:
    await _mode(to, "tasks")


@scenario
async def stream_checkpoints(to: Conversation) -> None:
    await _mode(to, "checkpoints")


@scenario
async def stream_debug(to: Conversation) -> None:
    await _mode(to, "debug")


@scenario
async def stream_events(to: Conversation) -> None:
    await _mode(to, "events")


@scenario
async def stream_messages(to: Conversation) -> None:
    await _mode(to, "messages", "chat", input=HELLO)


@scenario
async def stream_messages_tuple(to: Conversation) -> None:
    await _mode(to, "messages-tuple", "chat", input=HELLO)


@scenario
async def stream_by_default(to: Conversation) -> None:
    thread = await to.thread()
    await to.hear("default", to.client.runs.stream(thread, "steps", input={"count": 1}))


@scenario
async def stream_several_modes(to: Conversation) -> None:
    thread = await to.thread()
    modes = ["values", "updates", "custom"]
    await to.hear("several", to.client.runs.stream(thread, "steps", input={"count": 1}, stream_mode=modes))  # type: ignore[arg-type]


@scenario
async def stream_subgraphs(to: Conversation) -> None:
    runs = to.client.runs
    for mode in ("values", "updates", "tasks"):
        thread = await to.thread(f"thread {mode}")
        given = {"input": {"count": 1}, "stream_mode": mode, "stream_subgraphs": True}
        await to.hear(mode, runs.stream(thread, "nested", **given))  # type: ignore[call-overload]
        resumed = {"command": {"resume": "yes"}, "stream_mode": mode, "stream_subgraphs": True}
        await to.hear(f"{mode} resumed", runs.stream(thread, "nested", **resumed))  # type: ignore[call-overload]


@scenario
async def stream_of_a_question(to: Conversation) -> None:
    for mode in ("values", "updates"):
        thread = await to.thread(f"thread {mode}")
        given = {"input": {"count": 1}, "stream_mode": mode}
        await to.hear(mode, to.client.runs.stream(thread, "asks", **given))  # type: ignore[call-overload]


@scenario
async def stream_of_a_failure(to: Conversation) -> None:
    thread = await to.thread()
    await to.hear("values", to.client.runs.stream(thread, "fails", input={"count": 1}))
    await to.hear("updates", to.client.runs.stream(thread, "fails", input={"count": 1}, stream_mode="updates"))


@scenario
async def stream_resumable(to: Conversation) -> None:
    thread = await to.thread()
    given = {"input": {"count": 1}, "stream_mode": "updates", "stream_resumable": True}
    run: list[str] = []
    parts = to.client.runs.stream(thread, "steps", on_run_created=lambda meta: run.append(meta["run_id"]), **given)  # type: ignore[call-overload]
    events = await to.hear("stream", parts)
    to.named(run[0], "run")
    join = to.client.runs.join_stream
    await to.hear("from the start", join(thread, run[0], last_event_id="-1"))
    await to.hear("after the first", join(thread, run[0], last_event_id=events[0].id))
    await to.hear("after the last", join(thread, run[0], last_event_id=events[-1].id))
    await to.hear("no id", join(thread, run[0]))
    await to.hear("a bad id", join(thread, run[0], last_event_id="nope"))
    await to.hear("another mode", join(thread, run[0], last_event_id="-1", stream_mode="values"))


@scenario
async def stream_joined(to: Conversation) -> None:
    runs = to.client.runs
    thread, gate = await to.thread(), to.gate()
    run = await runs.create(thread, "slow", input={"count": 1, "gate": gate}, stream_mode=["values", "updates"])
    named = to.named(run["run_id"], "run")
    await to.arrived(gate)

    async def opening() -> AsyncIterator[Any]:
        async for part in runs.join_stream(thread, named):
            to.open(gate)
            yield part

    await to.hear("live", opening())
    to.open(gate)
    await to.hear("ended", runs.join_stream(thread, named))
    await to.hear("unknown run", runs.join_stream(thread, str(uuid4())))


@scenario
async def stream_cancelled(to: Conversation) -> None:
    runs = to.client.runs
    thread, gate = await to.thread(), to.gate()

    async def cancelling() -> AsyncIterator[Any]:
        cancelled = False
        parts = runs.stream(thread, "slow", input={"count": 1, "gate": gate}, stream_mode="updates")
        async for part in parts:
            yield part
            if part.event == "updates" and not cancelled:
                cancelled = True
                await to.arrived(gate)
                [live] = [one for one in await runs.list(thread) if one["status"] == "running"]
                await runs.cancel(thread, live["run_id"])

    await to.hear("cancelled", cancelling())
    to.open(gate)


@scenario
async def stream_left_early(to: Conversation) -> None:
    runs = to.client.runs
    for behaviour in ("continue", "cancel", None):
        thread, gate = await to.thread(f"thread {behaviour}"), to.gate(f"gate-{behaviour}")
        more = {"on_disconnect": behaviour} if behaviour else {}
        parts = runs.stream(thread, "slow", input={"count": 1, "gate": gate}, stream_mode="values", **more)  # type: ignore[call-overload]
        async for _ in parts:
            await to.arrived(gate)
            break
        await parts.aclose()
        [run] = await runs.list(thread)
        if behaviour == "cancel":
            to.note(f"{behaviour} ends", await to.ended(thread, run["run_id"]))
            to.open(gate)
        else:
            to.open(gate)
            to.note(f"{behaviour} ends", await to.ended(thread, run["run_id"]))


@scenario
async def stream_of_a_thread(to: Conversation) -> None:
    runs = to.client.runs
    thread = await to.thread()
    listening = asyncio.create_task(
        to.hear("thread", _runs_of(to, thread), enough=lambda part: (part.data or {}).get("status") == "run_done")
    )
    # Nothing says that a stream with nothing in it is open.
    await asyncio.sleep(1.5)
    run = await runs.create(thread, "steps", input={"count": 1}, stream_mode=["updates"])
    to.named(run["run_id"], "run")
    try:
        await asyncio.wait_for(listening, 5)
    except TimeoutError:
        to.note("it tells the run's end", False)


async def _runs_of(to: Conversation, thread: str) -> AsyncIterator[Any]:
    async for part in await to.client.threads.join_stream(thread, stream_mode=["run_modes", "lifecycle"]):
        yield part


@scenario
async def thread_protocol(to: Conversation) -> None:
    thread = await to.thread()
    async with to.client.threads.stream(thread, assistant_id="steps") as stream:
        started = await to.say("start", stream.run.start(input={"count": 1}))
        if started is None:
            return
        await to.say("output", stream.output.with_timeout(10))
    async with to.client.threads.stream(await to.thread("other"), assistant_id="asks") as stream:
        await stream.run.start(input={"count": 1})
        await to.settled(lambda: _asks(stream))
        to.note("asked", stream.interrupts)
        await to.say("respond", stream.run.respond("yes"))
        await to.say("answered", stream.output.with_timeout(10))


async def _asks(stream: Any) -> bool:
    return bool(stream.interrupts)
