"""The event protocol on a real host: commands, events, resuming, questions, kills, by plain HTTP and by WebSocket."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from langgraph_sdk.client import LangGraphClient
from tests.host.http.events.reading import ALL, Frame, command, events, is_root, shown, started, subscribed, up_to
from tests.host.http.test_flow_threads import unique
from tests.support.waiting import until
from websockets.asyncio.client import ClientConnection, connect

from agentvisor.core.ids import RunId, ThreadId
from agentvisor.host.app import Host
from agentvisor.host.streams import RunStreams, StreamLimits, TapeId

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]

HI = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return tmp_path / "gate"


def numbers(frames: list[Frame]) -> list[int]:
    return [one["seq"] for one in frames if one["type"] == "event"]


async def test_who_subscribes_before_there_is_a_thread_follows_its_first_run(
    http: httpx.AsyncClient, sdk: LangGraphClient
) -> None:
    thread = unique()
    async with subscribed(http, thread) as frames:
        run_id = await started(http, thread, "talking", input=HI, metadata={"by": "me"})
        found = await up_to(frames, is_root("completed"))
    assert (await sdk.runs.get(thread, run_id))["metadata"]["by"] == "me"
    first, *_, last = shown(found)
    assert first == ("lifecycle", {"event": "running", "graph_name": "talking"})
    assert last == ("lifecycle", {"event": "completed", "graph_name": "talking"})
    assert found[0]["event_id"] == f"synth:{run_id}:lc||running"
    deltas = [data["delta"]["text"] for _, data in shown(found, "messages") if "delta" in data]
    assert deltas == ["hello", " ", "big", " ", "world"]
    kinds = list(dict.fromkeys(data["event"] for _, data in shown(found, "messages")))
    assert kinds == [
        "message-start",
        "content-block-start",
        "content-block-delta",
        "content-block-finish",
        "message-finish",
    ]
    assert {one["method"] for one in found} == {
        "lifecycle",
        "values",
        "updates",
        "messages",
        "tasks",
        "checkpoints",
    }
    final = shown(found, "values")[-1][1]
    assert [one["content"] for one in final["messages"]] == ["hi", "hello big world"]
    assert numbers(found) == sorted(set(numbers(found)))
    assert len({one["event_id"] for one in found}) == len(found)


async def test_a_late_subscriber_is_told_what_a_live_one_was(http: httpx.AsyncClient) -> None:
    thread = unique()
    async with subscribed(http, thread) as frames:
        await started(http, thread, "nested", input={"count": 1})
        live = await up_to(frames, is_root("interrupted"))
    assert await events(http, thread, is_root("interrupted")) == live
    # Agent Protocol's name of the place.
    assert await events(http, thread, is_root("interrupted"), place="stream") == live


async def test_a_client_that_was_cut_off_goes_on_after_any_event_also_with_other_channels(
    http: httpx.AsyncClient,
) -> None:
    thread = unique()
    await started(http, thread, "talking", input=HI)
    await events(http, thread, is_root("completed"))
    await started(http, thread, "talking", input=HI)
    whole = [one async for one in _both(http, thread)]
    for at in range(0, len(whole) - 1, 3):
        rest = whole[at + 1 :]
        assert await events(http, thread, _same(whole[-1]), since=whole[at]["seq"]) == rest
    # What a number means does not depend on the channels that were asked for.
    some = [one for one in whole if one["method"] in ("values", "lifecycle")]
    for one in some[:-1]:
        found = await events(http, thread, _same(whole[-1]), ["messages", "lifecycle"], since=one["seq"])
        assert found == [
            each for each in whole if each["seq"] > one["seq"] and each["method"] in ("messages", "lifecycle")
        ]


async def _both(http: httpx.AsyncClient, thread: str) -> AsyncIterator[Frame]:
    """All events of a thread's two runs."""
    ends = 0
    async with subscribed(http, thread) as frames:
        async for frame in frames:
            yield frame
            ends += is_root("completed")(frame)
            if ends == 2:
                return


def _same(last: Frame) -> Any:
    return lambda frame: frame.get("event_id") == last["event_id"]


async def test_subgraphs_begin_and_end_and_are_subscribed_to_by_their_namespace(http: httpx.AsyncClient) -> None:
    thread = unique()
    await started(http, thread, "nested_later", input={"count": 1})
    found = await events(http, thread, is_root("interrupted"), ["lifecycle", "values"])
    below = [one for one in found if one["params"]["namespace"]]
    [place] = {tuple(one["params"]["namespace"]) for one in below}
    assert place[0].startswith("inner:")
    told = [data for method, data in shown(below) if method == "lifecycle"]
    assert [one["event"] for one in told] == ["started", "interrupted"]
    assert (told[0]["graph_name"], told[0]["trigger_call_id"]) == ("inner", place[0].partition(":")[2])
    # By its node, and by its whole name.
    for prefix in (["inner"], list(place)):
        wanted = lambda frame: frame["params"]["data"].get("event") == "interrupted"  # noqa: E731
        part = await events(http, thread, wanted, ["lifecycle", "values"], namespaces=[prefix])
        assert part == below
    root = await events(http, thread, is_root("interrupted"), ["lifecycle", "values"], namespaces=[[]], depth=0)
    assert root == [one for one in found if not one["params"]["namespace"]]
    tree = (await command(http, thread, "agent.getTree"))["result"]["tree"]
    assert (tree["graph_name"], tree["status"]) == ("nested_later", "interrupted")
    assert [(one["namespace"], one["status"]) for one in tree["children"]] == [([place[0]], "interrupted")]


async def test_several_questions_are_told_and_answered_at_once(http: httpx.AsyncClient, sdk: LangGraphClient) -> None:
    thread = unique()
    first = await started(http, thread, "choosing", input={"log": []}, config={"tags": ["mine"]})
    found = await events(http, thread, is_root("interrupted"))
    asked = {data["payload"]["question"]: data["interrupt_id"] for _, data in shown(found, "input.requested")}
    assert set(asked) == {"sure?", "really?"}
    responses = [{"interrupt_id": one, "response": text, "namespace": []} for text, one in asked.items()]
    reply = await command(http, thread, "input.respond", responses=responses, metadata={"by": "me"})
    assert reply["type"] == "success"
    # What came before is what the client has; the run that follows comes after it.
    assert reply["meta"] == {"applied_through_seq": found[-1]["seq"]}
    run_id = reply["result"]["run_id"]
    rest = await events(http, thread, is_root("completed"), since=reply["meta"]["applied_through_seq"])
    assert rest[0]["event_id"] == f"synth:{run_id}:lc||running"
    assert sorted(shown(rest, "values")[-1][1]["log"]) == ["answer sure?", "other answer really?"]
    run = await sdk.runs.get(thread, run_id)
    assert run["metadata"] == {"by": "me"}
    assert dict(run)["kwargs"]["config"] == dict(await sdk.runs.get(thread, first))["kwargs"]["config"]


async def test_an_answer_to_what_does_not_wait_changes_nothing(http: httpx.AsyncClient, sdk: LangGraphClient) -> None:
    thread = unique()
    await started(http, thread, "asking", input={"count": 1})
    [(_, asked)] = shown(await events(http, thread, is_root("interrupted")), "input.requested")
    one = asked["interrupt_id"]
    stale = "0" * 32
    for responses in ([{"interrupt_id": stale, "response": 1}], [
        {"interrupt_id": one, "response": 1},
        {"interrupt_id": stale, "response": 1},
    ]):  # fmt: skip
        reply = await command(http, thread, "input.respond", responses=responses)
        assert (reply["type"], reply["error"]) == ("error", "no_such_interrupt")
        assert stale in reply["message"]
    assert len(await sdk.runs.list(thread)) == 1
    assert (await sdk.threads.get(thread))["status"] == "interrupted"
    assert (await command(http, thread, "input.respond", interrupt_id=one, response="yes"))["type"] == "success"
    again = await command(http, thread, "input.respond", interrupt_id=one, response="no")
    assert again["error"] == "no_such_interrupt"
    assert len(await sdk.runs.list(thread)) == 2


async def test_what_comes_while_a_question_waits_is_its_answer(http: httpx.AsyncClient) -> None:
    thread = unique()
    await started(http, thread, "asking", input={"count": 1})
    await events(http, thread, is_root("interrupted"))
    await started(http, thread, "asking", input="go on")
    found = await events(http, thread, is_root("completed"), ["values", "lifecycle"])
    assert shown(found, "values")[-1][1]["log"] == ["worked", "answer go on"]


async def test_a_failed_run_says_why(http: httpx.AsyncClient) -> None:
    thread = unique()
    await started(http, thread, "failing", input={"count": 1})
    found = await events(http, thread, is_root("failed"), ["lifecycle", "values"])
    assert found[-1]["params"]["data"] == {"event": "failed", "graph_name": "failing", "error": "boom!"}


async def test_a_plain_agent_tells_what_it_returns_as_values(http: httpx.AsyncClient) -> None:
    thread = unique()
    await started(http, thread, "plain", input={"a": 1})
    found = await events(http, thread, is_root("completed"))
    assert shown(found)[1:-1] == [
        ("custom", {"payload": {"step": 1}}),
        ("custom", {"payload": {"step": 2}}),
        ("values", {"echo": {"a": 1}}),
    ]


async def test_a_run_that_another_client_started_its_own_way_is_followed_too(
    http: httpx.AsyncClient, sdk: LangGraphClient
) -> None:
    thread = unique()
    run = await sdk.runs.create(thread, "talking", input=HI, if_not_exists="create", stream_mode="messages-tuple")
    found = await events(http, thread, is_root("completed", run["run_id"]))
    assert [data["delta"]["text"] for _, data in shown(found, "messages") if "delta" in data] == [
        "hello", " ", "big", " ", "world",
    ]  # fmt: skip
    # The run was not asked for values: it is told what it has come to.
    assert [one["content"] for one in shown(found, "values")[-1][1]["messages"]] == ["hi", "hello big world"]


async def test_runs_that_wait_for_each_other_are_followed_in_their_order(http: httpx.AsyncClient, gate: Path) -> None:
    thread = unique()
    first = await started(http, thread, "waiting", input={"gate": str(gate)})
    async with subscribed(http, thread, ["lifecycle"]) as frames:
        second = await started(http, thread, "waiting", input={"count": 1}, multitaskStrategy="enqueue")
        reply = await command(http, thread, "run.start", assistant_id="waiting", input={}, multitask_strategy="reject")
        assert reply["type"] == "error"
        gate.touch()
        found = await up_to(frames, is_root("completed", second))
    assert [one["event_id"] for one in found] == [
        f"synth:{run}:lc||{event}" for run in (first, second) for event in ("running", "completed")
    ]
    assert numbers(found) == sorted(set(numbers(found)))


async def test_a_killed_agent_begins_again_and_no_event_comes_twice(http: httpx.AsyncClient, gate: Path) -> None:
    thread = unique()
    async with subscribed(http, thread) as frames:
        await started(http, thread, "dying", input={"gate": str(gate)})
        found = await up_to(frames, is_root("completed"))
    running = [data for _, data in shown(found, "lifecycle") if data["event"] == "running"]
    assert [one.get("attempt", 1) for one in running] == [1, 2]
    assert shown(found, "values")[-1][1]["log"] == ["worked", "lived"]
    assert numbers(found) == sorted(set(numbers(found)))
    assert len({one["event_id"] for one in found}) == len(found)
    assert await events(http, thread, is_root("completed"), since=found[3]["seq"]) == found[4:]


@pytest_asyncio.fixture(loop_scope="session")
async def streams(http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> RunStreams:
    """The tapes of the host."""
    found = list[RunStreams]()
    publish = RunStreams.publish

    def noted(self: RunStreams, *args: Any) -> None:
        found.append(self)
        publish(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(RunStreams, "publish", noted)
        thread = unique()
        await started(http, thread, "nothing")
        await events(http, thread, is_root("completed"))
    return found[0]


async def test_a_reader_who_is_slower_than_the_tape_is_told_what_he_missed_and_goes_on(
    http: httpx.AsyncClient, streams: RunStreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = unique()
    monkeypatch.setattr(streams, "_limits", StreamLimits(events=2))
    async with subscribed(http, thread) as frames:
        await started(http, thread, "talking", input=HI)
        found = await up_to(frames, is_root("completed"))
    gaps = [one for one in found if one["type"] == "error"]
    assert {one["error"] for one in gaps} == {"resume_gap"}
    assert numbers(found) == sorted(set(numbers(found)))
    assert [one["content"] for one in shown(found, "values")[-1][1]["messages"]] == ["hi", "hello big world"]
    # The rest of the tape is what another is told, from where he says he is.
    gap, *rest = await events(http, thread, is_root("completed"), since=found[0]["seq"])
    assert (gap["error"], gap["since"]) == ("resume_gap", found[0]["seq"])
    assert rest[-1] == found[-1]


async def test_what_is_no_longer_kept_is_said_and_then_comes_what_it_has_come_to(
    http: httpx.AsyncClient, streams: RunStreams
) -> None:
    thread = unique()
    run_id = await started(http, thread, "asking", input={"count": 1})
    whole = await events(http, thread, is_root("interrupted"))
    # As after a restart of the host.
    streams.forget(TapeId(ThreadId(thread), RunId(run_id)))
    found = await events(http, thread, is_root("interrupted"), since=whole[3]["seq"])
    gap, *rest = found
    assert (gap["type"], gap["id"], gap["error"]) == ("error", None, "resume_gap")
    assert gap["since"] == whole[3]["seq"] < gap["min_available_seq"] <= rest[0]["seq"]
    assert shown(rest, "values")[-1][1]["log"] == ["worked"]
    assert shown(rest, "input.requested") == shown(whole, "input.requested")
    assert rest[-1] == whole[-1]
    # Who has seen the end has missed nothing, and who comes anew neither.
    again = await started(http, thread, "asking", input="yes")
    after = await events(http, thread, is_root("completed"), since=whole[-1]["seq"])
    assert after[0]["event_id"] == f"synth:{again}:lc||running"
    fresh = await events(http, thread, is_root("completed"))
    assert {one["type"] for one in fresh} == {"event"}


@pytest.mark.parametrize(
    "body, status",
    [
        (b"", 400),
        (b"no json", 400),
        (b"[]", 400),
        (b"{}", 400),
        (b'{"id": "1", "method": "run.start"}', 400),
        (b'{"id": true, "method": "run.start"}', 400),
        (b'{"id": 1, "method": 1}', 400),
        (b'{"id": 1, "method": "run.start", "params": []}', 400),
        (b'{"id": 1, "method": "state.get"}', 200),
    ],
)
async def test_what_is_no_command_is_400(http: httpx.AsyncClient, body: bytes, status: int) -> None:
    response = await http.post(f"/threads/{unique()}/commands", content=body)
    assert response.status_code == status
    reply = response.json()
    assert reply["type"] == "error"
    assert reply["error"] == ("invalid_argument" if status == 400 else "unknown_command")


@pytest.mark.parametrize(
    "method, params, error, said",
    [
        ("run.start", {}, "invalid_argument", "assistant_id"),
        ("run.start", {"assistant_id": "nobody"}, "invalid_argument", "nobody"),
        ("run.start", {"assistant_id": "asking", "stream_mode": "values"}, "invalid_argument", "stream_mode"),
        ("run.start", {"assistant_id": "asking", "webhok": "x"}, "invalid_argument", "webhok"),
        (
            "run.start",
            {"assistant_id": "asking", "config": {"recursion_limit": 0}},
            "invalid_argument",
            "recursion_limit",
        ),
        ("run.start", {"assistant_id": "asking", "metadata": 1}, "invalid_argument", "metadata"),
        (
            "run.start",
            {"assistant_id": "asking", "multitaskStrategy": "reject", "multitask_strategy": "enqueue"},
            "invalid_argument",
            "multitask_strategy",
        ),
        (
            "run.start",
            {"assistant_id": "asking", "config": {"configurable": {"checkpoint_id": "none"}}},
            "no_such_run",
            "does not exist",
        ),
        ("input.respond", {"interrupt_id": "0" * 32, "response": 1}, "no_such_run", "does not exist"),
        ("input.respond", {}, "invalid_argument", "interrupt_id"),
        ("input.respond", {"responses": []}, "invalid_argument", "at least one"),
        ("input.respond", {"responses": [{"response": 1}]}, "invalid_argument", "interrupt_id"),
        ("input.respond", {"interrupt_id": "i", "namespace": "x"}, "invalid_argument", "namespace"),
        ("input.respond", {"interrupt_id": "i", "answer": 1}, "invalid_argument", "answer"),
        ("agent.getTree", {}, "no_such_run", "does not exist"),
        ("subscription.subscribe", {"channels": ["values"]}, "not_supported", "stream/events"),
        ("input.inject", {}, "unknown_command", "input.inject"),
    ],
)
async def test_a_command_that_cannot_be_done_says_why_and_makes_no_thread(
    http: httpx.AsyncClient, method: str, params: dict[str, Any], error: str, said: str
) -> None:
    thread = unique()
    reply = await command(http, thread, method, **params)
    assert (reply["type"], reply["error"]) == ("error", error)
    assert said in reply["message"]
    assert (await http.get(f"/threads/{thread}")).status_code == 404


@pytest.mark.parametrize("body", [{}, {"channels": ["debug"]}, {"channels": ["values"], "since": True}, [], "x"])
async def test_what_is_no_subscription_is_400(http: httpx.AsyncClient, body: Any) -> None:
    for place in ("stream/events", "stream"):
        response = await http.post(f"/threads/{unique()}/{place}", json=body)
        assert response.status_code == 400
        assert response.json()["code"] == "invalid_input"


async def test_a_deleted_thread_ends_its_streams(http: httpx.AsyncClient) -> None:
    thread = unique()
    await started(http, thread, "plain", input=1)
    async with subscribed(http, thread) as frames:
        await up_to(frames, is_root("completed"))
        await http.delete(f"/threads/{thread}")
        async with asyncio.timeout(20):
            assert [one async for one in frames] == []


# --- over a WebSocket -------------------------------------------------------------------------------------------------


class Socket:
    """A client's end."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.events: list[Frame] = []
        self.replies: dict[int, Frame] = {}
        self._next = 0

    async def read(self) -> None:
        async for text in self.connection:
            message = json.loads(text)
            if message["type"] == "event" or message["id"] is None:
                self.events.append(message)
            else:
                self.replies[message["id"]] = message

    async def ask(self, method: str, **params: Any) -> Frame:
        self._next += 1
        number = self._next
        await self.connection.send(json.dumps({"id": number, "method": method, "params": params}))
        await until(lambda: number in self.replies)
        return self.replies[number]

    async def until(self, wanted: Any) -> list[Frame]:
        await until(lambda: any(map(wanted, self.events)))
        return self.events


@pytest.fixture
def place(host: Host) -> str:
    return host.url.replace("http", "ws")


async def test_one_socket_carries_commands_and_events(place: str, http: httpx.AsyncClient) -> None:
    thread = unique()
    async with connect(f"{place}/threads/{thread}/stream/events") as connection:
        socket = Socket(connection)
        reading = asyncio.create_task(socket.read())
        reply = await socket.ask("subscription.subscribe", channels=ALL)
        assert (reply["type"], reply["meta"]) == ("success", {"applied_through_seq": 0})
        subscription = reply["result"]["subscription_id"]
        run_id = (await socket.ask("run.start", assistant_id="asking", input={"count": 1}))["result"]["run_id"]
        found = await socket.until(is_root("interrupted"))
        assert found == await events(http, thread, is_root("interrupted"))
        [(_, asked)] = shown(found, "input.requested")
        reply = await socket.ask("input.respond", interrupt_id=asked["interrupt_id"], response="yes", namespace=[])
        assert reply["meta"] == {"applied_through_seq": found[-1]["seq"]}
        await socket.until(is_root("completed"))
        assert run_id not in socket.events[-1]["event_id"]
        assert (await socket.ask("agent.getTree"))["result"]["tree"]["status"] == "completed"
        assert (await socket.ask("subscription.unsubscribe", subscription_id=subscription))["result"] == {}
        gone = await socket.ask("subscription.unsubscribe", subscription_id=subscription)
        assert gone["error"] == "no_such_subscription"
        seen = len(socket.events)
        await started(http, thread, "asking", input={"count": 1})
        await events(http, thread, is_root("interrupted"), since=socket.events[-1]["seq"])
        assert len(socket.events) == seen
        reading.cancel()


async def test_subscriptions_of_a_socket_are_told_of_an_event_once_and_late_ones_of_what_was(
    place: str, http: httpx.AsyncClient, gate: Path
) -> None:
    thread = unique()
    async with connect(f"{place}/threads/{thread}/stream/events") as connection:
        socket = Socket(connection)
        reading = asyncio.create_task(socket.read())
        await socket.ask("subscription.subscribe", channels=["values", "lifecycle"])
        await socket.ask("subscription.subscribe", channels=["lifecycle", "input"])
        await socket.ask("run.start", assistant_id="waiting", input={"gate": str(gate)})
        await until(gate.with_suffix(".started").exists)
        gate.touch()
        found = [*await socket.until(is_root("completed"))]
        assert len({one["event_id"] for one in found}) == len(found)
        socket.events.clear()
        await socket.ask("subscription.subscribe", channels=["lifecycle"])
        assert shown(await socket.until(is_root("completed"))) == shown(found, "lifecycle")
        reading.cancel()


async def test_a_subscription_is_taken_up_where_it_was_or_says_that_it_cannot(
    place: str, http: httpx.AsyncClient
) -> None:
    thread = unique()
    await started(http, thread, "talking", input=HI)
    whole = await events(http, thread, is_root("completed"))
    async with connect(f"{place}/threads/{thread}/stream/events") as connection:
        socket = Socket(connection)
        reading = asyncio.create_task(socket.read())
        since = whole[4]["seq"]
        reply = await socket.ask("subscription.reconnect", channels=ALL, since=since, subscription_id="mine")
        assert reply["result"] == {"subscription_id": "mine"}
        assert await socket.until(is_root("completed")) == whole[5:]
        for params, error in (
            ({"channels": ALL}, "invalid_argument"),
            ({"channels": ALL, "since": -1}, "invalid_argument"),
            ({"channels": ALL, "since": 1, "subscription_id": "mine"}, "invalid_argument"),
        ):
            assert (await socket.ask("subscription.reconnect", **params))["error"] == error
        reading.cancel()


@pytest.mark.parametrize(
    "text", ["no json", "[]", '{"id": "x", "method": "a"}', '{"id": 1, "method": "a", "params": 1}']
)
async def test_what_is_no_command_is_answered_and_the_socket_lives_on(place: str, text: str) -> None:
    async with connect(f"{place}/threads/{unique()}/stream/events") as connection:
        await connection.send(text)
        reply = json.loads(await connection.recv())
        assert (reply["type"], reply["error"]) == ("error", "invalid_argument")
        await connection.send(json.dumps({"id": 2, "method": "nope"}))
        assert json.loads(await connection.recv())["error"] == "unknown_command"


async def test_a_socket_of_no_thread_is_closed_with_the_status_that_http_would_have(place: str) -> None:
    async with connect(f"{place}/threads/no%20id/stream/events") as connection:
        await connection.wait_closed()
        assert connection.close_code == 4422
