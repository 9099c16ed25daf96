"""ADK's agents as the runner runs them, in this process: inputs, questions and answers, streams, errors."""

import asyncio
import base64
import json
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from google.adk.agents import Agent, ParallelAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.apps.app import EventsCompactionConfig
from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.adk.events.request_input import RequestInput
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.workflow import START, FunctionNode, Workflow
from google.genai import types
from tests.guest.runners import adk_agents
from tests.guest.runners.adk_agents import DID, agent
from tests.guest.runners.adk_running import Thread

from agentvisor.client import tool_scope
from agentvisor.client.conversation import Paused, conversation
from agentvisor.core.errors import InvalidInput
from agentvisor.guest.runners.adk_json import message_of
from agentvisor.guest.runners.adk_questions import open_questions
from agentvisor.guest.user_traceback import UserTraceback
from agentvisor.testing import call
from agentvisor.testing.adk import ScriptedModel
from agentvisor.testing.script import InvalidHistory

pytestmark = pytest.mark.thorough

JSON_OF: dict[str, Any] = {"configurable": {"user_id": "ann"}}


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DID.clear()


def events_of(thread: Thread) -> list[Event]:
    session = asyncio.run(thread.session())
    return list(session.events)


def said(thread: Thread) -> list[str]:
    parts = [part for event in events_of(thread) if event.content for part in event.content.parts or []]
    return [part.text for part in parts if part.text]


# --- what it is given ------------------------------------------------------------------------------------------------


def test_a_thread_remembers() -> None:
    thread = Thread(lambda: agent("a", ["one", "two", "three"]))
    for number in ("one", "two", "three"):
        assert thread.run(f"say {number}") == ("completed", number)
    assert said(thread) == ["say one", "one", "say two", "two", "say three", "three"]
    assert thread.shown["said"][-1] == {"author": "a", "text": "three"}
    assert thread.channel.reports == 0, "where nothing waits or waited there is nothing to report"


@pytest.mark.parametrize(
    "given, text",
    [
        ("hello", "hello"),
        ({"parts": [{"text": "hello"}]}, "hello"),
        ({"messages": [{"role": "assistant", "content": "hi"}, {"role": "user", "content": "hello"}]}, "hello"),
        ({"messages": [{"type": "human", "content": [{"type": "text", "text": "hello"}]}]}, "hello"),
        ({"order": 7}, '{"order": 7}'),
        (7, "7"),
    ],
)
def test_an_input_is_the_users_message(given: Any, text: str) -> None:
    thread = Thread(lambda: agent("a", ["one"]))
    thread.run(given)
    assert said(thread) == [text, "one"]


def test_an_input_may_hold_bytes() -> None:
    thread = Thread(lambda: agent("a", ["one"]))
    image = base64.b64encode(b"\x00\xff").decode()
    thread.run({"parts": [{"inline_data": {"mime_type": "image/png", "data": image}}, {"text": "what is it?"}]})
    (blob,) = [part.inline_data for part in events_of(thread)[0].content.parts if part.inline_data]  # type: ignore[union-attr]
    assert blob.data == b"\x00\xff"


@pytest.mark.parametrize(
    "given, told",
    [
        ({"parts": [{"text": 7}]}, "not a Content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "url": "x"}]}]}, "reads text"),
        (None, "no input"),
    ],
)
def test_what_is_no_message_is_refused_and_nothing_is_stored(given: Any, told: str) -> None:
    thread = Thread(lambda: agent("a", ["one"]))
    with pytest.raises(InvalidInput, match=told):
        thread.run(given)
    assert thread.state.writes == 0


def say_one(node_input: Any) -> str:
    return "one"


async def made_later() -> App:
    return App(name="later", root_agent=agent("a", ["one"]))


@pytest.mark.parametrize(
    "made",
    [
        agent("a", ["one"]),
        App(name="mine", root_agent=agent("a", ["one"])),
        App(name="mine", root_agent=agent("a", ["one"]), resumability_config=ResumabilityConfig(is_resumable=False)),
        lambda: agent("a", ["one"]),
        made_later,
        Workflow(name="wf", edges=[(START, say_one)]),
    ],
    ids=["agent", "app", "not_resumable", "factory", "async_factory", "workflow"],
)
def test_an_agent_comes_in_many_forms(made: Any) -> None:
    thread = Thread(lambda: made)
    assert thread.run("hello") == ("completed", "one")


@pytest.mark.parametrize("made", [7, lambda: 7, lambda config: config])
def test_what_is_no_agent_is_refused(made: Any) -> None:
    with pytest.raises(InvalidInput, match=r"agent of ADK"):
        Thread(lambda: made).run("hello")


def test_a_session_belongs_to_the_user_whom_the_first_run_names() -> None:
    thread = Thread(lambda: agent("a", ["one", "two"]))
    thread.run("hello", config=json.dumps(JSON_OF).encode())
    assert asyncio.run(thread.session()).user_id == "ann"
    assert thread.run("hello again") == ("completed", "two")
    with pytest.raises(InvalidInput, match="'ann'"):
        thread.run("hello", config=b'{"configurable": {"user_id": "bob"}}')


# --- questions -------------------------------------------------------------------------------------------------------


def test_a_confirmation_is_told_with_all_that_a_person_needs() -> None:
    thread = Thread(adk_agents.confirmations)
    assert thread.run("go") == ("paused", None)
    asked = thread.channel.waiting[0]
    assert asked["kind"] == "confirmation"
    assert (asked["value"]["tool"], asked["value"]["args"], asked["value"]["payload"]) == ("pay", {"note": "1"}, None)
    assert "approve or reject" in asked["value"]["hint"]
    assert (asked["belongs_to"]["agent"], asked["belongs_to"]["tool"]) == ("a", "pay")
    assert {"type": "boolean"} in asked["schema"]["anyOf"]


def test_a_request_for_input_is_told_with_its_schema() -> None:
    thread = Thread(adk_agents.workflow)
    thread.run("go")
    (asked,) = thread.channel.waiting
    assert (asked["kind"], asked["value"]) == ("input", {"message": "how many?", "payload": {"x": 1}})
    assert asked["schema"] == {"type": "object"}


def test_a_tool_that_works_elsewhere_waits_for_its_result() -> None:
    thread = Thread(adk_agents.order_beside_payment)
    thread.run("go")
    (asked,) = thread.channel.waiting
    assert (asked["kind"], asked["value"]) == ("result", {"tool": "order", "args": {"note": "1"}})
    assert thread.run(answers={asked["id"]: {"tracking": 7}}) == ("completed", "a done")
    assert DID.count("ordered 1") == DID.count("paid 1") == 1


@pytest.mark.parametrize("order", [1, -1])
def test_an_answer_waits_for_the_rest(order: int) -> None:
    thread = Thread(adk_agents.confirmations)
    thread.run("go")
    first, second = thread.channel.waiting[::order]
    assert thread.run(answers={first["id"]: {"confirmed": False}}) == ("paused", None)
    assert thread.channel.waiting == [second]
    assert not [one for one in DID if one.startswith("paid")]
    assert thread.run(answers={second["id"]: True}) == ("completed", "a done")
    assert [one for one in DID if one.startswith("paid")] == [f"paid {second['value']['args']['note']}"]
    assert thread.channel.waiting == []


@pytest.mark.parametrize("answer", ["yes", 1, None, {"confirmed": "yes"}, {"confirmed": True, "more": 1}, []])
def test_an_answer_that_is_no_confirmation_is_refused(answer: Any) -> None:
    thread = Thread(adk_agents.confirmations)
    thread.run("go")
    first, second = thread.channel.waiting
    writes = thread.state.writes
    with pytest.raises(InvalidInput, match="does not fit"):
        thread.run(answers={first["id"]: answer, second["id"]: True})
    assert thread.state.writes == writes
    assert thread.run(answers={first["id"]: True, second["id"]: True}) == ("completed", "a done")


def test_an_answer_that_does_not_fit_its_schema_is_refused() -> None:
    thread = Thread(adk_agents.workflow)
    thread.run("go")
    with pytest.raises(InvalidInput, match="not of type 'object'"):
        thread.run(answers={"q": "seven"})
    assert thread.run(answers={"q": {"n": 7}}) == ("completed", "end of told {'n': 7}")


@pytest.mark.parametrize("answer", ["7", "true", "seven", 7, None, {"result": 7}, ["a"]])
def test_a_workflow_gets_an_answer_as_it_was_given(answer: Any) -> None:
    got: list[Any] = []

    async def ask(ctx: Any, node_input: Any) -> AsyncGenerator[Any, None]:
        if "q" in ctx.resume_inputs:
            got.append(ctx.resume_inputs["q"])
            yield "done"
            return
        yield RequestInput(interrupt_id="q", message="?")

    node = FunctionNode(func=ask, name="ask", rerun_on_resume=True)
    thread = Thread(lambda: Workflow(name="wf", edges=[(START, node)]))
    thread.run("go")
    assert thread.run(answers={"q": answer}) == ("completed", "done")
    assert got == [answer]


@pytest.mark.parametrize(
    "make", [adk_agents.confirmations, adk_agents.order_beside_payment, adk_agents.orders_in_sequence]
)
def test_given_up_questions_are_closed_for_good(make: Callable[[], Any]) -> None:
    thread = Thread(make)
    thread.run("go")
    asked = {one["id"] for one in thread.channel.waiting}
    try:
        # A strict model: a provider would refuse a call without an answer.
        thread.run("something else", forgets=True)
    except InvalidHistory as error:
        pytest.fail(str(error))
    answers = [one for event in events_of(thread) for one in event.get_function_responses() if one.id in asked]
    assert {one.id for one in answers} == asked
    assert all("given up" in json.dumps(one.response) for one in answers)
    assert "something else" in said(thread)
    assert not asked & {one["id"] for one in thread.channel.waiting}


def test_an_agent_whose_questions_were_given_up_may_go_on_without_input() -> None:
    thread = Thread(adk_agents.orders_in_sequence)
    thread.run("go")
    (asked,) = thread.channel.waiting
    assert thread.run(forgets=True) == ("paused", None)
    assert asked not in thread.channel.waiting
    assert "ordered 2" in DID
    assert thread.run(forgets=True) == ("completed", "c done")


@pytest.mark.parametrize("make", [adk_agents.confirmations, adk_agents.orders_in_sequence])
def test_of_questions_that_were_answered_nothing_is_kept_beside_the_session(make: Callable[[], Any]) -> None:
    thread = Thread(make)
    ended, _ = thread.run("go")
    while ended == "paused":
        ended, _ = thread.run(answers={thread.channel.waiting[0]["id"]: True})
    kept = asyncio.run(thread.state.akeys(scope="adk"))
    assert {one.partition("/")[0] for one in kept} <= {"session", "user"}


def test_what_was_answered_before_the_rest_was_given_up_counts_where_the_agent_goes_on_without_input() -> None:
    thread = Thread(adk_agents.confirmations)
    thread.run("go")
    first, _ = thread.channel.waiting
    assert thread.run(answers={first["id"]: True}) == ("paused", None)
    assert thread.run(forgets=True) == ("completed", "a done")
    assert [one for one in DID if one.startswith("paid")] == ["paid 1"]
    assert thread.channel.waiting == []


def test_a_request_for_credentials_shows_no_secret() -> None:
    oauth = {"clientId": "me", "clientSecret": "s3cret", "authUri": "https://login.example/?state=1"}
    arguments = {"functionCallId": "c", "authConfig": {"exchangedAuthCredential": {"oauth2": oauth}}}
    asks = types.FunctionCall(id="q", name="adk_request_credential", args=arguments)
    content = types.Content(role="model", parts=[types.Part(function_call=asks)])
    (question,) = open_questions([Event(author="a", content=content, long_running_tool_ids={"q"})])
    waiting = question.waiting()
    assert (waiting.kind, waiting.value) == ("credential", {"message": None, "auth_uri": oauth["authUri"]})
    assert "s3cret" not in json.dumps([waiting.value, dict(waiting.belongs_to)])
    answer = {"authConfig": {"exchangedAuthCredential": {"oauth2": {"authResponseUri": "https://me.example"}}}}
    response = question.answered(answer).function_response
    assert response is not None
    assert (response.id, response.name, response.response) == ("q", "adk_request_credential", answer)


def test_the_same_question_may_be_asked_again() -> None:
    async def ask(ctx: Any, node_input: Any) -> AsyncGenerator[Any, None]:
        answer = ctx.resume_inputs.get("q")
        DID.append(f"got {answer}")
        if answer == "enough":
            yield "done"
            return
        yield RequestInput(interrupt_id="q", message="more?")

    node = FunctionNode(func=ask, name="ask", rerun_on_resume=True)
    thread = Thread(lambda: Workflow(name="wf", edges=[(START, node)]))
    thread.run("go")
    assert thread.run(answers={"q": "more"}) == ("paused", None)
    assert [one["id"] for one in thread.channel.waiting] == ["q"]
    assert thread.run(answers={"q": "enough"}) == ("completed", "done")
    assert DID == ["got None", "got more", "got enough"]


def test_what_a_session_stores_grows_with_what_happens_and_not_with_what_is_there() -> None:
    turns = 40
    script = [reply for number in range(turns) for reply in (call("order", note=str(number)), f"done {number}")]
    thread = Thread(lambda: agent("a", script, adk_agents.ORDER))
    written: list[int] = []
    for _ in range(turns):
        thread.run("go")
        (asked,) = thread.channel.waiting
        thread.run(answers={asked["id"]: "sent"})
        written.append(thread.state.written)
    early, late = written[9] - written[0], written[-1] - written[-10]
    assert late < early * 1.1


# --- streams ---------------------------------------------------------------------------------------------------------


def test_text_is_streamed_as_it_comes() -> None:
    thread = Thread(lambda: agent("a", [call("pay", note="1"), "well and truly paid"], adk_agents.pay))
    thread.run("go", stream_modes=["messages", "updates", "custom"])
    messages = [data for mode, data in thread.channel.streamed if mode == "messages"]
    chunks = [one for one, _ in messages if one["type"] == "AIMessageChunk"]
    assert [one["content"] for one in chunks] == ["well", " and", " truly", " paid"]
    (whole,) = [one for one, _ in messages if one["type"] == "ai" and one["content"]]
    assert whole["content"] == "well and truly paid"
    assert {one["id"] for one in chunks} == {whole["id"]}
    assert [one["tool_calls"][0]["args"] for one, _ in messages if one.get("tool_calls")] == [{"note": "1"}]
    updates = [data["a"] for mode, data in thread.channel.streamed if mode == "updates"]
    assert [next(iter(one["content"]["parts"][0])) for one in updates] == ["function_call", "function_response", "text"]
    assert updates[1]["actions"]["state_delta"]["paid"] == ["1"]
    assert not {"node_info", "model_version", "isolation_scope"} & {key for one in updates for key in one}


def test_nothing_is_streamed_that_nobody_asked_for() -> None:
    thread = Thread(lambda: agent("a", ["one"]))
    thread.run("go", stream_modes=["values"])
    assert thread.channel.streamed == []
    with pytest.raises(InvalidInput, match="stream mode 'events'"):
        thread.run("go", stream_modes=["events"])


def test_a_run_that_has_to_make_way_ends_between_two_events_and_goes_on_elsewhere() -> None:
    thread = Thread(adk_agents.sequence)
    thread.channel.drain_asked = True
    assert thread.run("go") == ("drained", None)
    thread.channel.drain_asked = False
    thread.runs -= 1
    assert thread.run("go") == ("completed", "b done")
    assert said(thread).count("go") == 1
    assert DID.count("paid 1") == DID.count("paid 2") == 1


# --- errors ----------------------------------------------------------------------------------------------------------


def failing(order: str) -> str:
    """Fail the first time."""
    DID.append(f"tried {order}")
    if len(DID) == 1:
        raise LookupError(f"no order {order}")
    return "found"


def failing_agent() -> Agent:
    return Agent(name="a", model=adk_agents.ScriptedModel([call("failing", order="7"), "done"]), tools=[failing])


def failing_workflow() -> Workflow:
    return Workflow(name="wf", edges=[(START, failing_agent())])


@pytest.mark.parametrize("make", [failing_agent, failing_workflow])
def test_an_error_of_a_tool_is_told_as_the_users_and_the_next_run_makes_the_call_again(make: Callable[[], Any]) -> None:
    thread = Thread(make)
    with pytest.raises(LookupError) as raised:
        thread.run("go")
    told = UserTraceback.of(raised.value).text
    assert told.count("Traceback") == 1
    assert told.splitlines()[-2].strip().startswith('raise LookupError(f"no order {order}")') or "failing" in told
    assert thread.run() == ("completed", "done")
    assert DID == ["tried 7", "tried 7"]
    assert said(thread).count("go") == 1


def test_a_failed_run_does_not_stand_in_the_way_of_new_input() -> None:
    thread = Thread(failing_agent)
    with pytest.raises(LookupError):
        thread.run("go")
    assert thread.run("go on") == ("completed", "done")


def test_state_that_is_not_json_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def keep(tool_context: Any) -> str:
        """Keep."""
        tool_context.state["odd"] = object()
        return "kept"

    thread = Thread(lambda: agent("a", [call("keep"), "done"], keep))
    with caplog.at_level(logging.WARNING):
        assert thread.run("go") == ("completed", "done")
    assert "state['odd'] is not JSON (object)" in caplog.text
    assert thread.shown["state"]["odd"].startswith("<object object")


@pytest.mark.parametrize("beside", [[], [call("pay", note="1")]], ids=["alone", "beside_another"])
def test_state_of_bytes_that_are_no_text_is_stored_as_base64(beside: list[Any]) -> None:
    def keep(tool_context: Any) -> str:
        """Keep."""
        tool_context.state["odd"] = b"\xff\x00"
        return "kept"

    thread = Thread(lambda: agent("a", [[call("keep"), *beside], "done"], keep, adk_agents.pay))
    assert thread.run("go") == ("completed", "done")
    assert thread.shown["state"]["odd"] == base64.urlsafe_b64encode(b"\xff\x00").decode()


@pytest.mark.parametrize("beside", [[], [call("pay", note="1")]], ids=["alone", "beside_another"])
def test_a_tools_result_that_is_not_json_is_an_error_that_names_the_tool(beside: list[Any]) -> None:
    def odd() -> Any:
        """Odd."""
        return {"rows": [1, object()]}

    thread = Thread(lambda: agent("a", [[call("odd"), *beside], "done"], odd, adk_agents.pay))
    with pytest.raises(InvalidInput, match=r"what the tool odd returned is not JSON.*object"):
        thread.run("go")


# --- more of ADK -----------------------------------------------------------------------------------------------------


def test_effects_of_one_call_are_told_from_those_of_another() -> None:
    scopes: list[str] = []

    def act(note: str) -> str:
        """Act."""
        scopes.append(tool_scope.scope())
        return note

    script = [[call("act", note="1"), call("act", note="2")], call("act", note="3"), "done"]
    thread = Thread(lambda: agent("a", script, act))
    thread.run("go")
    ids = [one.id for event in events_of(thread) for one in event.get_function_calls()]
    assert sorted(scopes) == sorted(f"tool/{id_}/" for id_ in ids)
    assert tool_scope.scope() == ""


class CountsAnew(ScriptedModel):
    """Its calls have the same ids in each answer."""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any]:  # noqa: FBT001, FBT002
        async for response in super().generate_content_async(llm_request, stream):
            for number, part in enumerate(response.content.parts):
                if part.function_call:
                    part.function_call.id = f"call_{number}"
            yield response


@pytest.mark.parametrize("writes", [None, 2, 3])
def test_calls_of_a_model_that_repeats_its_ids_are_told_apart(writes: int | None) -> None:
    scopes: list[str] = []

    def act(note: str) -> str:
        """Act."""
        scopes.append(tool_scope.scope())
        return note

    script = [
        [call("act", note="1"), call("act", note="2")],
        "one",
        [call("order", note="1"), call("act", note="3")],
        "two",
    ]
    thread = Thread(lambda: Agent(name="a", model=CountsAnew(script), tools=[act, adk_agents.ORDER]))
    assert thread.run("go") == ("completed", "one")
    thread.state.left = writes
    assert thread.run("go on") == ("paused", None)
    (asked,) = thread.channel.waiting
    assert thread.run(answers={asked["id"]: "sent"}) == ("completed", "two")
    assert len(set(scopes)) == 3
    assert scopes[:2] == ["tool/call_0/", "tool/call_1/"]


def test_agents_side_by_side_that_ask_by_agentvisor_interrupt_end_the_run_paused() -> None:
    def ask(note: str) -> str:
        """Ask, as `agentvisor.interrupt` does where there is no answer."""
        talk = conversation()
        assert talk is not None
        talk.is_paused = True
        raise Paused(note)

    sides = [agent(name, [call("ask", note=name), "done"], ask) for name in ("a", "b")]
    thread = Thread(lambda: ParallelAgent(name="par", sub_agents=[side.clone() for side in sides]))
    assert thread.run("go") == ("paused", None)


def test_an_agent_that_delegates_goes_on_when_the_other_has_talked_with_the_user() -> None:
    def make() -> Agent:
        other = agent("other", ["Which order?", call("finish_task", result="order 7")], mode="task")
        return agent("a", [call("other", request="find out"), "It is order 7."], sub_agents=[other])

    thread = Thread(make)
    assert thread.run("go") == ("completed", "Which order?")
    assert thread.run("7") == ("completed", "It is order 7.")


async def inner(ctx: Any, node_input: Any) -> AsyncGenerator[Any, None]:
    """Ask inside of a tool."""
    if "q" in ctx.resume_inputs:
        DID.append("asked")
        yield f"told {ctx.resume_inputs['q']}"
        return
    yield RequestInput(interrupt_id="q", message="how many?")


def test_a_question_inside_of_a_tool_is_the_only_one_that_waits() -> None:
    tool = FunctionNode(func=inner, name="inner", rerun_on_resume=True)
    thread = Thread(lambda: agent("a", [call("inner", node_input="x"), "done"], tool))
    thread.run("go")
    assert [one["id"] for one in thread.channel.waiting] == ["q"]
    assert thread.run(answers={"q": 7}) == ("completed", "done")
    assert DID.count("asked") == 1


class Summarizer(BaseEventsSummarizer):
    """Condenses what it is given."""

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        DID.append(f"condensed {len(events)}")
        condensed = EventCompaction(
            start_timestamp=events[0].timestamp,
            end_timestamp=events[-1].timestamp,
            compacted_content=types.Content(role="model", parts=[types.Part(text="it was said")]),
        )
        return Event(author="user", invocation_id=events[-1].invocation_id, actions=EventActions(compaction=condensed))


def test_a_session_is_condensed_behind_the_last_event_and_the_next_run_goes_on() -> None:
    config = EventsCompactionConfig(summarizer=Summarizer(), compaction_interval=2, overlap_size=0)
    # What is condensed is told as one content of the model.
    script = ["one", "two", "two", "three", "four"]
    thread = Thread(lambda: App(name="shop", root_agent=agent("a", script), events_compaction_config=config))
    for _ in range(3):
        thread.run("go")
    assert sum(one.startswith("condensed") for one in DID) == 1
    assert sum(event.actions.compaction is not None for event in events_of(thread)) == 1


def test_a_long_running_tool_that_tells_of_its_progress_waits_all_the_same() -> None:
    def begin(note: str) -> dict[str, str]:
        """Begin."""
        DID.append(f"begun {note}")
        return {"status": "pending"}

    tool = LongRunningFunctionTool(begin)
    thread = Thread(lambda: agent("a", [call("begin", note="1"), "It is under way.", "It is done."], tool))
    assert thread.run("go") == ("paused", None)
    (asked,) = thread.channel.waiting
    assert thread.run(answers={asked["id"]: {"status": "done"}})[0] == "completed"
    assert DID.count("begun 1") == 1


def test_an_empty_text_is_no_input() -> None:
    with pytest.raises(InvalidInput, match="empty text"):
        message_of("")
