"""A Strands agent goes on where it was, whatever became of the run before: finished, failed, crashed, or asking."""

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from strands import Agent, ToolContext, tool
from strands.hooks import BeforeToolCallEvent
from strands.session import FileSessionManager
from tests.support.scripted import unmarked
from tests.support.strands_thread import StrandsThread

from agentvisor.core.errors import IncompatibleState, InvalidInput
from agentvisor.testing import call
from agentvisor.testing.strands import ScriptedModel

done: list[str] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    done.clear()


@tool
def pay(note: str) -> str:
    """Pay."""
    done.append(note)
    return f"paid {note}"


@tool(context=True)
def ask(note: str, tool_context: ToolContext) -> str:
    """Ask."""
    done.append(f"asking {note}")
    answer = tool_context.interrupt(f"sure {note}", reason={"note": note})
    done.append(f"{note} {answer}")
    return f"{note}: {answer}"


def agent(*script: Any, **more: Any) -> Agent:
    tools = more.pop("tools", [pay, ask])
    return Agent(model=ScriptedModel(list(script)), tools=tools, callback_handler=None, **more)


def texts(thread: StrandsThread) -> list[str]:
    """Who said what, tools as their names."""
    return [
        f"{message['role']}: " + " ".join(block.get("text") or next(iter(block)) for block in message["content"])
        for message in thread.subject.messages
    ]


def results(thread: StrandsThread) -> dict[str, str]:
    found = {
        block["toolResult"]["toolUseId"]: block["toolResult"]["content"][0]["text"]
        for message in thread.subject.messages
        for block in message["content"]
        if "toolResult" in block
    }
    return dict(unmarked(found))


# --- memory -----------------------------------------------------------------------------------------------------------


async def test_the_next_run_remembers() -> None:
    thread = StrandsThread(lambda: agent("Hello Bob.", "You are Bob."))
    first, second = await thread.run("I am Bob."), await thread.run("Who am I?")
    assert first is not None
    assert second is not None
    assert (first.output["text"], first.output["stop_reason"]) == ("Hello Bob.", "end_turn")
    assert second.output["text"] == "You are Bob."
    assert [one["role"] for one in second.output["messages"]] == ["user", "assistant"] * 2
    assert texts(thread)[0] == "user: I am Bob."


async def test_state_and_bytes_are_kept() -> None:
    thread = StrandsThread(lambda: agent("I see.", "Again."))
    image = {"image": {"format": "png", "source": {"bytes": {"__bytes_encoded__": True, "data": "AAEC"}}}}
    await thread.run([image, {"text": "What is it?"}])
    thread.subject.state.set("seen", 1)
    await thread.run("And now?")
    assert thread.subject.messages[0]["content"][0]["image"]["source"]["bytes"] == b"\0\1\2"


@pytest.mark.parametrize(
    "given",
    ["Hi", {"prompt": "Hi"}, {"messages": [{"role": "user", "content": "Hi"}]}, [{"text": "Hi"}],
     {"messages": [{"type": "human", "content": [{"type": "text", "text": "Hi"}]}]}],
)  # fmt: skip
async def test_an_input_may_have_several_forms(given: Any) -> None:
    thread = StrandsThread(lambda: agent("Hello."))
    await thread.run(given)
    assert texts(thread) == ["user: Hi", "assistant: Hello."]


@pytest.mark.parametrize(
    "given", [7, [], {}, {"x": 1}, [1], [{"nope": 1}], {"messages": [{"role": "tool", "content": "x"}]},
              [{"interruptResponse": {"interruptId": "a", "response": 1}}]]
)  # fmt: skip
async def test_an_input_that_is_none_is_refused_before_anything_is_saved(given: Any) -> None:
    thread = StrandsThread(lambda: agent("Hello."))
    with pytest.raises(InvalidInput, match=r"input|answers"):
        await thread.run(given)
    assert thread.stored == {}


async def test_a_run_without_input_needs_something_to_go_on_with() -> None:
    thread = StrandsThread(lambda: agent("Hello."))
    with pytest.raises(InvalidInput, match="give the run an input"):
        await thread.run()
    await thread.run("Hi")
    again = await thread.run()
    assert again is not None
    assert again.output["text"] == "Hello."


# --- crashes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("saves", range(1, 6))
async def test_wherever_the_process_dies_the_run_goes_on_with_what_is_not_done(saves: int) -> None:
    thread = StrandsThread(lambda: agent("Hello.", call("pay", note="a"), "Paid."))
    await thread.run("Hi")
    ended = await thread.run("Pay.", dies_after=saves)
    if saves < 5:
        assert ended is None
    ended = await thread.run("Pay.", run_id="run-2")
    assert ended is not None
    assert ended.output["text"] == "Paid."
    assert [one["role"] for one in ended.output["messages"]] == ["user", "assistant"] * 3
    assert done == ["a"]


async def test_a_tool_that_was_finished_beside_one_that_was_not_is_not_run_again() -> None:
    thread = StrandsThread(lambda: agent([call("pay", note="a"), call("pay", note="b")], "Paid."))
    await thread.run("Pay.", dies_after=3)
    kept = thread.last("strands.run")["strands"]["results"]
    before = list(done)
    ended = await thread.run("Pay.", run_id="run-1")
    assert ended is not None
    assert ended.output["text"] == "Paid."
    finished = {one["content"][0]["text"].removeprefix("paid ") for one in kept.values()}
    assert finished
    assert sorted(done[len(before) :]) == sorted({"a", "b"} - finished)
    assert results(thread) == {"call_1_1": "paid a", "call_1_2": "paid b"}


async def test_a_new_input_after_a_crash_finds_the_tool_call_answered_for() -> None:
    thread = StrandsThread(lambda: agent(call("pay", note="a"), "Sorry."))
    await thread.run("Pay.", dies_after=2)
    ended = await thread.run("What happened?")
    assert ended is not None
    assert ended.output["text"] == "Sorry."
    assert "may or may not have taken effect" in results(thread)["call_1_1"]
    assert texts(thread)[0] == "user: Pay."


async def test_a_run_without_input_after_a_crash_goes_on() -> None:
    thread = StrandsThread(lambda: agent(call("pay", note="a"), "Paid."))
    await thread.run("Pay.", dies_after=2)
    ended = await thread.run()
    assert ended is not None
    assert ended.output["text"] == "Paid."
    assert results(thread) == {"call_1_1": "paid a"}


async def test_an_input_of_several_messages_is_in_as_a_whole_or_not() -> None:
    thread = StrandsThread(lambda: agent("Hello."))
    given = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    await thread.run(given, dies_after=1)
    assert len(thread.last("strands.run")["messages"]) == 3


async def test_a_host_that_leaves_gets_the_run_between_two_steps() -> None:
    thread = StrandsThread(lambda: agent(call("pay", note="a"), "Paid."))
    thread.leaving = True
    left = await thread.run("Pay.")
    assert left is not None
    assert not left.completed
    assert done == []
    thread.leaving = False
    ended = await thread.run("Pay.", run_id="run-1")
    assert ended is not None
    assert ended.completed
    assert done == ["a"]


# --- failures ---------------------------------------------------------------------------------------------------------


class Breaks(ScriptedModel):
    """Raises as often as it is told to."""

    broken = 0

    async def stream(self, *args: Any, **options: Any) -> Any:
        if Breaks.broken:
            Breaks.broken -= 1
            raise LookupError("the model is gone")
        async for event in super().stream(*args, **options):
            yield event


def breaking(*script: Any) -> Agent:
    return Agent(model=Breaks(list(script)), tools=[pay], callback_handler=None)


async def test_a_failed_turn_is_not_in_the_next_one() -> None:
    thread = StrandsThread(lambda: breaking("Hello.", "Yes."))
    await thread.run("Hi")
    Breaks.broken = 1
    with pytest.raises(LookupError):
        await thread.run("Are you there?")
    await thread.run("Are you there?")
    assert texts(thread) == ["user: Hi", "assistant: Hello.", "user: Are you there?", "assistant: Yes."]


async def test_a_run_without_input_goes_on_with_a_failed_turn() -> None:
    thread = StrandsThread(lambda: breaking("Hello."))
    Breaks.broken = 1
    with pytest.raises(LookupError):
        await thread.run("Hi")
    ended = await thread.run()
    assert ended is not None
    assert texts(thread) == ["user: Hi", "assistant: Hello."]


async def test_a_failed_run_is_not_tried_again_by_a_late_attempt() -> None:
    thread = StrandsThread(lambda: breaking("Hello."))
    Breaks.broken = 1
    with pytest.raises(LookupError):
        await thread.run("Hi", run_id="r")
    with pytest.raises(Exception, match="failed before: LookupError: the model is gone"):
        await thread.run("Hi", run_id="r")


# --- questions --------------------------------------------------------------------------------------------------------


async def test_a_question_is_answered_in_another_process() -> None:
    thread = StrandsThread(lambda: agent(call("ask", note="a"), "Done."))
    paused = await thread.run("Ask.")
    assert paused is not None
    assert paused.paused
    (question,) = thread.waiting
    assert question.value == {"name": "sure a", "reason": {"note": "a"}}
    assert unmarked(question.belongs_to) == {"tool": "ask", "tool_call_id": "call_1_1", "input": {"note": "a"}}
    ended = await thread.run(answers={question.id: False})
    assert ended is not None
    assert ended.output["text"] == "Done."
    assert done == ["asking a", "asking a", "a False"]
    assert thread.waiting == []


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_two_questions_are_answered_in_any_order_and_the_third_tool_runs_once(order: tuple[int, int]) -> None:
    thread = StrandsThread(
        lambda: agent([call("ask", note="a"), call("pay", note="p"), call("ask", note="b")], "Done.")
    )
    await thread.run("Ask.")
    questions = sorted(thread.waiting, key=lambda one: str(one.belongs_to["tool_call_id"]))
    assert len(questions) == 2
    for place, number in enumerate(order):
        ended = await thread.run(answers={questions[number].id: f"yes {number}"})
        assert ended is not None
        assert ended.paused == (place == 0)
        assert len(thread.waiting) == 1 - place
    assert done.count("p") == 1
    assert [one for one in done if "yes" in one] == [f"{'ab'[number]} yes {number}" for number in order]
    assert results(thread) == {"call_1_1": "a: yes 0", "call_1_2": "paid p", "call_1_3": "b: yes 1"}


@pytest.mark.parametrize("background", [{"always": ["*"]}, True, {"never": ["*"]}])
async def test_tools_that_were_to_run_in_the_background_ask_and_outlive_their_process(background: Any) -> None:
    script = [[call("pay", note="a"), call("ask", note="b", _background_execution=True)], "done"]
    if background is not True:
        script = [[call("pay", note="a"), call("ask", note="b")], "done"]
    thread = StrandsThread(lambda: agent(*script, background_tasks=background))
    assert await thread.run("pay", run_id="r", dies_after=2) is None
    paused = await thread.run("pay", run_id="r")
    assert paused is not None
    assert paused.paused
    ended = await thread.run(answers={thread.waiting[0].id: "yes"})
    assert ended is not None
    assert ended.output["text"] == "done"
    assert results(thread) == {"call_1_1": "paid a", "call_1_2": "b: yes"}
    assert (done.count("a"), done.count("b yes")) == (1, 1)


async def test_a_hook_asks_before_the_tool_runs() -> None:
    def gated() -> Agent:
        made = agent(call("pay", note="a"), "Done.")

        def gate(event: BeforeToolCallEvent[Any]) -> None:
            if event.interrupt("approve", reason="money") != "yes":
                event.cancel_tool = "not approved"

        made.hooks.add_callback(BeforeToolCallEvent, gate)
        return made

    thread = StrandsThread(gated)
    await thread.run("Pay.")
    assert done == []
    ended = await thread.run(answers={thread.waiting[0].id: "yes"})
    assert ended is not None
    assert done == ["a"]


async def test_wherever_a_resumed_process_dies_the_answer_counts_once_and_is_not_lost() -> None:
    for saves in range(1, 5):
        done.clear()
        thread = StrandsThread(lambda: agent([call("ask", note="a"), call("ask", note="b")], "Done."))
        await thread.run("Ask.")
        answers = {one.id: "yes" for one in thread.waiting}
        await thread.run(answers=answers, run_id="r", dies_after=saves)
        ended = await thread.run(answers=answers, run_id="r")
        assert ended is not None
        assert ended.output["text"] == "Done."
        assert results(thread) == {"call_1_1": "a: yes", "call_1_2": "b: yes"}
        assert thread.waiting == []


async def test_bad_answers_change_nothing() -> None:
    thread = StrandsThread(lambda: agent(call("ask", note="a"), "Done."))
    with pytest.raises(InvalidInput):
        await thread.run(answers={"x": 1})
    await thread.run("Ask.")
    before = {key: list(kept) for key, kept in thread.stored.items()}
    question = thread.waiting[0].id
    for answers in ({"x": 1}, {question: 1, "x": 1}, {question: None}):
        with pytest.raises(InvalidInput):
            await thread.run(answers=answers)
    assert thread.stored == before
    assert [one.id for one in thread.waiting] == [question]
    again = await thread.run()
    assert again is not None
    assert again.paused


async def test_a_new_input_beside_a_question_closes_its_tool_call() -> None:
    thread = StrandsThread(lambda: agent([call("ask", note="a"), call("pay", note="p")], "Never mind."))
    await thread.run("Ask.")
    ended = await thread.run("Something else.")
    assert ended is not None
    assert ended.output["text"] == "Never mind."
    assert results(thread)["call_1_1"].startswith("Abandoned")
    assert results(thread)["call_1_2"] == "paid p"
    assert thread.waiting == []


async def test_a_failure_after_the_answer_was_used_leaves_no_question() -> None:
    def made() -> Agent:
        return Agent(model=Breaks([call("ask", note="a"), "Done."]), tools=[ask], callback_handler=None)

    thread = StrandsThread(made)
    await thread.run("Ask.")
    question = thread.waiting[0].id
    Breaks.broken = 1
    with pytest.raises(LookupError):
        await thread.run(answers={question: "yes"})
    assert thread.waiting == []
    ended = await thread.run("Now?")
    assert ended is not None
    assert results(thread) == {"call_1_1": "a: yes"}


# --- state that does not fit ------------------------------------------------------------------------------------------


async def test_a_state_that_does_not_fit_is_one_error_and_stays() -> None:
    from strands.agent.conversation_manager import SummarizingConversationManager

    thread = StrandsThread(lambda: agent("Hello."))
    await thread.run("Hi")
    kept = {key: list(one) for key, one in thread.stored.items()}
    good = thread.last("strands")

    def changed(**more: Any) -> dict[str, Any]:
        return {**good, "strands": {**good["strands"], **more}}

    snapshot = good["strands"]["state"]["snapshot"]
    for stored in (
        changed(version=2), changed(kind="graph"), changed(id="other"), changed(framework="adk"), changed(phase="x"),
        changed(state={"snapshot": {**snapshot, "schema_version": "9"}, "tools": {}}),
        changed(state={"snapshot": {**snapshot, "scope": "multiAgent"}, "tools": {}}),
        changed(state={"snapshot": {"schema_version": "1.0", "data": snapshot["data"]}, "tools": {}}),
        {"kind": "agent"},
    ):  # fmt: skip
        import json

        thread.stored["strands"] = [json.dumps(stored).encode()]
        thread.stored.pop("strands.run", None)
        with pytest.raises(IncompatibleState, match="left as it is"):
            await thread.run("Hi")
        assert thread.last("strands") == stored
        assert "strands.run" not in thread.stored
    thread.stored = kept
    thread.make = lambda: agent("Hello.", conversation_manager=SummarizingConversationManager())
    with pytest.raises(IncompatibleState, match="ValueError"):
        await thread.run("Hi")
    assert thread.stored == kept


async def test_a_state_that_cannot_be_stored_ends_the_turn_as_any_error_does() -> None:
    @tool(context=True)
    def spoil(tool_context: ToolContext) -> str:
        """Spoil the state."""
        tool_context.agent.state.set("x", float("nan"))  # Strands takes it for JSON
        return "spoilt"

    def make() -> Agent:
        return agent([call("pay", note="a"), call("spoil")], "Done.", "Hello.", tools=[pay, spoil])

    thread = StrandsThread(make)
    with pytest.raises(InvalidInput, match="nan"):
        await thread.run("Go.")
    assert thread.last("strands.run")["strands"]["phase"] == "failed"
    thread.make = lambda: agent("Hello.", tools=[pay, spoil])
    ended = await thread.run("Hi")
    assert ended is not None
    assert texts(thread) == ["user: Hi", "assistant: Hello."], "the failed turn is not in the next one"
    assert done == ["a"]


async def test_what_is_not_json_is_named() -> None:
    @tool
    def odd() -> dict[str, Any]:
        """Odd."""
        return {"status": "success", "content": [{"json": {"when": object()}}]}

    thread = StrandsThread(lambda: agent(call("odd"), "Done.", tools=[odd]))
    with pytest.raises(InvalidInput, match=r"\['when'\] is not JSON: object"):
        await thread.run("Go.")


# --- agents as tools --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preserve", [False, True])
async def test_a_question_inside_an_agent_that_is_a_tool_is_answered(preserve: bool) -> None:  # noqa: FBT001
    def made() -> Agent:
        inner = agent(call("ask", note="deep"), "Inner done.", name="inner", agent_id="inner")
        return agent(call("inner", input="do"), "Outer done.", tools=[inner.as_tool(preserve_context=preserve)])

    thread = StrandsThread(made)
    await thread.run("Go.")
    (question,) = thread.waiting
    ended = await thread.run(answers={question.id: "yes"})
    assert ended is not None
    assert ended.output["text"] == "Outer done."
    assert [one for one in done if one.startswith("deep")] == ["deep yes"]


class SameIds(ScriptedModel):
    """Its calls have the ids that another script's have: of one that was written without thinking of it."""

    def _said(self, messages: Any) -> Any:
        said = super()._said(messages)
        return replace(said, calls=tuple((f"call_{number}", one) for number, (_, one) in enumerate(said.calls)))


@pytest.mark.parametrize("preserve", [False, True])
async def test_what_a_question_is_about_is_told_level_by_level_though_ids_are_alike(preserve: bool) -> None:  # noqa: FBT001
    def made() -> Agent:
        inner = Agent(model=SameIds([call("ask", note="deep"), "Inner."]), tools=[ask], name="inner", agent_id="inner",
                      callback_handler=None)  # fmt: skip
        script = [[call("ask", note="outer"), call("inner", input="do")], "Done."]
        return Agent(
            model=SameIds(script), tools=[ask, inner.as_tool(preserve_context=preserve)], callback_handler=None
        )

    thread = StrandsThread(made)
    await thread.run("Go.")
    assert [one.belongs_to for one in thread.waiting] == [
        {"tool": "ask", "tool_call_id": "call_0", "input": {"note": "outer"}},
        {"tool": "ask", "tool_call_id": "call_0", "input": {"note": "deep"}},
    ]


@pytest.mark.parametrize("preserve", [False, True])
async def test_what_is_noted_of_a_question_of_an_inner_agent_has_the_id_that_is_reported(
    preserve: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import agentvisor
    from agentvisor import questions

    noted: list[str] = []
    monkeypatch.setattr(questions, "note", lambda asked, **_: noted.append(asked))
    monkeypatch.setattr(questions, "connect", lambda: SimpleNamespace(transport=None))
    monkeypatch.setattr(questions, "carry_out", lambda *_: None)

    @tool
    def late() -> str:
        """Ask with a deadline."""
        return str(agentvisor.interrupt("in time?", deadline=60))

    def made() -> Agent:
        deepest = agent(call("late"), "Deepest.", name="deepest", agent_id="deepest", tools=[late])
        deep = [deepest.as_tool(preserve_context=preserve)]
        inner = agent(call("deepest", input="do"), "Inner.", name="inner", agent_id="inner", tools=deep)
        return agent(call("inner", input="do"), "Outer.", tools=[inner.as_tool(preserve_context=preserve)])

    thread = StrandsThread(made)
    await thread.run("Go.")
    assert noted == [one.id for one in thread.waiting]
    assert thread.waiting[0].belongs_to["tool"] == "late"


async def test_an_agent_that_is_a_tool_keeps_its_conversation() -> None:
    def made() -> Agent:
        inner = agent("One.", "Two.", name="inner", agent_id="inner")
        script = [call("inner", input="1"), "First.", call("inner", input="2"), "Second."]
        return agent(*script, tools=[inner.as_tool(preserve_context=True)])

    thread = StrandsThread(made)
    await thread.run("Go.")
    await thread.run("Go on.")
    assert results(thread) == {"call_1_1": "One.\n", "call_3_1": "Two.\n"}


# --- our own questions, events ----------------------------------------------------------------------------------------


async def test_a_tool_asks_with_agentvisor_interrupt_in_its_own_order() -> None:
    import agentvisor

    @tool
    def twice() -> str:
        """Ask twice."""
        done.append("began")
        return f"{agentvisor.interrupt('one?')} {agentvisor.interrupt({'ask': 'two?'})}"

    thread = StrandsThread(lambda: agent(call("twice"), "Done.", tools=[twice]))
    await thread.run("Go.")
    assert [one.value for one in thread.waiting] == ["one?"]
    await thread.run(answers={thread.waiting[0].id: 1})
    assert [one.value for one in thread.waiting] == [{"ask": "two?"}]
    await thread.run(answers={thread.waiting[0].id: 2})
    assert results(thread) == {"call_1_1": "1 2"}
    assert done == ["began"] * 3


async def test_effects_are_told_apart_by_tool_use_and_those_of_an_inner_agent_by_the_outer_ones() -> None:
    from agentvisor.client.tool_scope import scope

    @tool
    def where() -> str:
        """Where."""
        return scope()

    def made() -> Agent:
        inner = agent(call("where"), "Inner.", tools=[where], name="inner")
        return agent([call("where"), call("where")], call("inner", input="x"), "Done.", tools=[where, inner])

    thread = StrandsThread(made)
    await thread.run("Go.")
    outer = results(thread)
    assert (outer["call_1_1"], outer["call_1_2"]) == ("tool/call_1_1/", "tool/call_1_2/")
    inner = thread.subject.tool_registry.registry["inner"].agent
    assert "tool/call_2_1/" in str(unmarked(inner.messages))


async def test_an_inner_agent_that_was_in_the_middle_of_its_turn_begins_that_turn_again_once() -> None:
    begun = asyncio.Event()

    @tool
    async def slow() -> str:
        """Be in the middle of something until the process has died."""
        done.append("slow")
        begun.set()
        await asyncio.sleep(0.2)
        return "slow"

    @tool
    async def quick() -> str:
        """Be done while the other is not."""
        await begun.wait()
        return "quick"

    def made() -> Agent:
        inner = agent("Before.", call("slow"), "Inner.", tools=[slow], name="inner", agent_id="inner")
        script = [call("inner", input="0"), "First.", [call("inner", input="1"), call("quick")], "Done."]
        return agent(*script, tools=[inner.as_tool(preserve_context=True), quick])

    thread = StrandsThread(made)
    await thread.run("Go.")
    await thread.run("Go on.", dies_after=3)
    assert unmarked(list(thread.last("strands.run")["strands"]["results"])) == ["call_3_2"]
    ended = await thread.run("Go on.", run_id="run-2")
    assert ended is not None
    assert ended.output["text"] == "Done."
    assert results(thread)["call_3_1"] == "Inner.\n"
    inner = thread.subject.tool_registry.registry["inner"].agent
    assert [one["content"][0].get("text") for one in inner.messages] == ["0", "Before.", "1", None, None, "Inner."]
    assert done == ["slow", "slow"]


async def test_an_agent_with_a_session_manager_of_its_own_works(tmp_path: Path) -> None:
    def made() -> Agent:
        manager = FileSessionManager(session_id="s", storage_dir=str(tmp_path))
        return agent("Hello.", call("pay", note="a"), "Paid.", session_manager=manager)

    thread = StrandsThread(made)
    await thread.run("Hi")
    await thread.run("Pay.", dies_after=2)
    ended = await thread.run("Pay.", run_id="run-2")
    assert ended is not None
    assert [one["role"] for one in ended.output["messages"]] == ["user", "assistant"] * 3
    assert done == ["a"]
