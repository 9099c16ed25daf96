"""Graphs and swarms go on at the node where they were; a failed one is never gone on from unasked."""

from typing import Any

import pytest
from strands import Agent, ToolContext, tool
from strands.hooks import BeforeNodeCallEvent
from strands.multiagent import GraphBuilder, Swarm
from strands.multiagent.graph import Graph
from tests.support.scripted import unmarked
from tests.support.strands_thread import StrandsThread

from agentvisor.core.errors import IncompatibleState, InvalidInput
from agentvisor.guest.runners.strands_result import RunFailed
from agentvisor.testing import call
from agentvisor.testing.strands import ScriptedModel

done: list[str] = []
broken: list[str] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    done.clear()
    broken.clear()


@tool
def work(note: str) -> str:
    """Work."""
    if note in broken:
        broken.remove(note)
        raise LookupError(f"no {note}")
    done.append(note)
    return f"worked {note}"


@tool(context=True)
def ask(note: str, tool_context: ToolContext) -> str:
    """Ask."""
    answer = tool_context.interrupt(f"sure {note}", reason=note)
    done.append(f"{note} {answer}")
    return f"{note}: {answer}"


class Model(ScriptedModel):
    """Notes each turn that it ends, and breaks where it is told to."""

    def __init__(self, name: str, *script: Any) -> None:
        super().__init__(list(script))
        self.name = name

    async def stream(self, *args: Any, **options: Any) -> Any:
        if self.name in broken:
            broken.remove(self.name)
            raise LookupError(f"{self.name} is broken")
        async for event in super().stream(*args, **options):
            yield event


def node(name: str, *script: Any) -> Agent:
    script = script or (call("work", note=name), f"{name} is done.")
    return Agent(model=Model(name, *script), name=name, agent_id=name, tools=[work, ask], callback_handler=None)


def graph(*edges: tuple[str, str], id: str = "g", entry: str = "a", limit: int = 0, **agents: Any) -> Graph:
    builder = GraphBuilder()
    for name in dict.fromkeys(one for edge in edges for one in edge):
        builder.add_node(agents.get(name) or node(name), name)
    for source, target in edges:
        builder.add_edge(source, target)
    builder.set_entry_point(entry)
    builder.set_graph_id(id)
    if limit:
        builder.set_max_node_executions(limit)
    return builder.build()


LINE = (("a", "b"), ("b", "c"))
DIAMOND = (("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"))


async def test_a_graph_runs_to_its_end_and_begins_anew_with_the_next_input() -> None:
    thread = StrandsThread(lambda: graph(*LINE))
    ended = await thread.run("Go.")
    assert ended is not None
    assert ended.output == {
        "text": "c is done.", "status": "completed", "order": ["a", "b", "c"],
        "nodes": {"a": "a is done.", "b": "b is done.", "c": "c is done."},
    }  # fmt: skip
    await thread.run("Again.")
    assert done == ["a", "b", "c"] * 2
    told = await thread.run()
    assert told is not None
    assert told.output == ended.output
    assert done == ["a", "b", "c"] * 2


@pytest.mark.parametrize("saves", range(1, 5))
async def test_a_graph_that_died_does_not_run_its_finished_nodes_again(saves: int) -> None:
    thread = StrandsThread(lambda: graph(*LINE))
    await thread.run("Go.", dies_after=saves)
    ended = await thread.run("Go.", run_id="run-1")
    assert ended is not None
    assert ended.output["order"] == ["a", "b", "c"]
    assert done == ["a", "b", "c"]


async def test_a_new_input_after_a_crash_begins_anew_and_none_goes_on() -> None:
    thread = StrandsThread(lambda: graph(*LINE))
    await thread.run("Go.", dies_after=1)
    ended = await thread.run("Other.")
    assert ended is not None
    assert done == ["a", "a", "b", "c"]
    assert "Other." in str(thread.subject.nodes["a"].executor.messages[0])
    await thread.run("Third.", dies_after=2)
    done.clear()
    await thread.run()
    assert done == ["c"]
    assert "Third." in str(thread.subject.nodes["c"].executor.messages[0])


def asking(**more: Any) -> Graph:
    return graph(*DIAMOND, b=node("b", call("ask", note="b"), "b is done."), **more)


async def test_an_interrupted_node_alone_runs_again() -> None:
    thread = StrandsThread(asking)
    paused = await thread.run("Go.")
    assert paused is not None
    assert paused.paused
    (question,) = thread.waiting
    assert unmarked(question.belongs_to) == {
        "node": "b",
        "tool": "ask",
        "tool_call_id": "call_1_1",
        "input": {"note": "b"},
    }
    assert sorted(done) == ["a", "c"]
    ended = await thread.run(answers={question.id: "yes"})
    assert ended is not None
    assert ended.output["status"] == "completed"
    assert sorted(done) == ["a", "b yes", "c", "d"]


def asking_twice() -> Graph:
    asks = {name: node(name, call("ask", note=name), f"{name} is done.") for name in ("b", "c")}
    return graph(*DIAMOND, **asks)


@pytest.mark.parametrize("first", [0, 1])
async def test_two_nodes_are_answered_in_any_order(first: int) -> None:
    thread = StrandsThread(asking_twice)
    await thread.run("Go.")
    questions = sorted(thread.waiting, key=lambda one: str(one.belongs_to["node"]))
    assert len(questions) == 2
    half = await thread.run(answers={questions[first].id: "yes"})
    assert half is not None
    assert half.paused
    assert [one.id for one in thread.waiting] == [questions[1 - first].id]
    ended = await thread.run(answers={questions[1 - first].id: "no"})
    assert ended is not None
    assert ended.output["status"] == "completed"
    assert done == ["a", f"{'bc'[first]} yes", f"{'cb'[first]} no", "d"]


@pytest.mark.parametrize("saves", range(1, 5))
async def test_a_resumed_graph_that_dies_asks_nobody_twice_and_leaves_no_node_out(saves: int) -> None:
    thread = StrandsThread(asking_twice)
    await thread.run("Go.")
    answers = {one.id: "yes" for one in thread.waiting}
    await thread.run(answers=answers, run_id="r", dies_after=saves)
    ended = await thread.run(answers=answers, run_id="r")
    assert ended is not None
    assert ended.completed
    assert ended.output["status"] == "completed"
    assert set(ended.output["order"]) == {"a", "b", "c", "d"}
    assert done[-1] == "d" or saves == 4
    assert done.count("d") == 1


async def test_a_node_that_a_hook_gates_runs_after_the_answer() -> None:
    def gated() -> Graph:
        made = graph(*LINE)

        def gate(event: BeforeNodeCallEvent) -> None:
            if event.node_id == "b":
                event.interrupt("enter b")

        made.hooks.add_callback(BeforeNodeCallEvent, gate)
        return made

    thread = StrandsThread(gated)
    await thread.run("Go.")
    assert done == ["a"]
    await thread.run(answers={thread.waiting[0].id: "yes"})
    assert done == ["a", "b", "c"]


async def test_a_graph_in_which_the_asking_node_dies_half_way_is_not_called_completed() -> None:
    thread = StrandsThread(asking)
    await thread.run("Go.")
    question = thread.waiting[0].id
    broken.append("d")
    with pytest.raises(LookupError, match="d is broken"):
        await thread.run(answers={question: "yes"})
    assert thread.waiting == []
    ended = await thread.run()
    assert ended is not None
    assert ended.output["status"] == "completed"
    assert sorted(done) == ["a", "b yes", "c", "d"]


# --- failures ---------------------------------------------------------------------------------------------------------


async def test_a_failed_graph_begins_anew_with_new_input_and_goes_on_without() -> None:
    thread = StrandsThread(lambda: graph(*LINE))
    for given, expected in (("New.", ["a", "a", "b", "c"]), (None, ["a", "b", "c"])):
        done.clear()
        broken.append("b")
        with pytest.raises(LookupError, match="b is broken"):
            await thread.run("Go.")
        ended = await thread.run(given)
        assert ended is not None
        assert ended.output["status"] == "completed"
        assert done == expected


async def test_past_a_limit_the_question_stays_open_and_no_approved_node_is_left_out() -> None:
    limits = [2]
    thread = StrandsThread(lambda: graph(*LINE, limit=limits[-1], b=node("b", call("ask", note="b"), "b is done.")))
    await thread.run("Go.")
    question = thread.waiting[0].id
    limits.append(1)
    with pytest.raises(Exception, match="a limit was reached"):
        await thread.run(answers={question: "yes"})
    assert [one.id for one in thread.waiting] == [question]
    assert done == ["a"]
    limits.append(10)
    ended = await thread.run(answers={question: "yes"})
    assert ended is not None
    assert ended.output["status"] == "completed"
    assert done == ["a", "b yes", "c"]


async def test_questions_that_were_given_up_are_gone() -> None:
    thread = StrandsThread(asking)
    await thread.run("Go.")
    broken.append("a")
    with pytest.raises(LookupError):
        await thread.run("New.")
    assert thread.waiting == []
    with pytest.raises(InvalidInput, match="give the run an input"):
        await thread.run()
    await thread.run("Go.")
    with pytest.raises(InvalidInput, match="given up"):
        await thread.run(forgets=True)


# --- other nodes ------------------------------------------------------------------------------------------------------


async def test_a_graph_may_change_between_tasks_but_not_within_one() -> None:
    thread = StrandsThread(asking)
    await thread.run("Go.")
    question = thread.waiting[0].id
    before = {key: list(kept) for key, kept in thread.stored.items()}
    thread.make = lambda: graph(("a", "b"), ("b", "e"))
    with pytest.raises(IncompatibleState, match="it lacks e; it has besides c, d"):
        await thread.run(answers={question: "yes"})
    thread.make = lambda: graph(*DIAMOND, id="other")
    with pytest.raises(IncompatibleState, match="graph 'g'"):
        await thread.run("New.")
    thread.make = lambda: node("a")
    with pytest.raises(IncompatibleState, match="graph 'g'"):
        await thread.run("New.")
    assert thread.stored == before
    thread.make = lambda: graph(("a", "b"), ("b", "e"))
    ended = await thread.run("New.")
    assert ended is not None
    assert ended.output["order"] == ["a", "b", "e"]


# --- swarms -----------------------------------------------------------------------------------------------------------


def swarm(*, second: Any = (), **more: Any) -> Swarm:
    one = node("one", call("work", note="one"), call("handoff_to_agent", agent_name="two", message="Go on."), "Handed.")
    two = node("two", *(second or (call("work", note="two"), "two is done.")))
    return Swarm([one, two], id="s", **more)


async def test_a_swarm_runs_to_its_end() -> None:
    thread = StrandsThread(swarm)
    ended = await thread.run("Go.")
    assert ended is not None
    assert (ended.output["text"], ended.output["order"]) == ("two is done.", ["one", "two"])
    await thread.run("Again.")
    assert done == ["one", "two"] * 2


@pytest.mark.parametrize("saves", range(1, 4))
async def test_a_swarm_that_died_after_a_handoff_runs_only_the_next_agent(saves: int) -> None:
    thread = StrandsThread(swarm)
    await thread.run("Go.", dies_after=saves)
    ended = await thread.run("Go.", run_id="run-1")
    assert ended is not None
    assert ended.output["order"] == ["one", "two"]
    assert done == ["one", "two"]


async def test_an_agent_of_a_swarm_asks() -> None:
    thread = StrandsThread(lambda: swarm(second=(call("ask", note="two"), "two is done.")))
    await thread.run("Go.")
    (question,) = thread.waiting
    assert question.belongs_to["node"] == "two"
    ended = await thread.run(answers={question.id: "yes"})
    assert ended is not None
    assert ended.output["status"] == "completed"
    assert done == ["one", "two yes"]


async def test_a_swarm_that_fails_fails_the_run() -> None:
    thread = StrandsThread(swarm)
    broken.append("two")
    with pytest.raises(LookupError, match="two is broken"):
        await thread.run("Go.")
    await thread.run()
    assert done == ["one", "two"]
    thread = StrandsThread(lambda: swarm(max_iterations=1))
    with pytest.raises(Exception, match="a limit was reached"):
        await thread.run("Go.")


# --- in one another ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["graph", "swarm"])
async def test_a_question_in_a_node_of_a_node_is_answered(kind: str) -> None:
    def made() -> Graph:
        second = (call("ask", note="two"), "two is done.")
        inner = (
            swarm(second=second) if kind == "swarm" else graph(("one", "two"), entry="one", two=node("two", *second))
        )
        return graph(*LINE, b=inner)

    thread = StrandsThread(made)
    await thread.run("Go.")
    (question,) = thread.waiting
    assert question.belongs_to["node"] == "b/two"
    ended = await thread.run(answers={question.id: "yes"})
    assert ended is not None
    assert ended.output["status"] == "completed"
    assert done == ["a", "one", "two yes", "c"]


@pytest.mark.parametrize("saves", range(1, 6))
async def test_a_graph_in_a_graph_that_died_does_not_run_its_finished_nodes_again(saves: int) -> None:
    thread = StrandsThread(lambda: graph(*LINE, b=graph(("x", "y"), entry="x", id="inner")))
    await thread.run("Go.", dies_after=saves)
    ended = await thread.run("Go.", run_id="run-1")
    assert ended is not None
    assert ended.output["order"] == ["a", "b", "c"]
    assert done == ["a", "x", "y", "c"]


async def test_an_agent_that_is_a_tool_of_a_node_is_asked_in() -> None:
    def made() -> Graph:
        inner = node("inner", call("ask", note="deep"), "inner is done.")
        outer = Agent(
            model=Model("b", call("inner", input="x"), "b is done."), name="b", agent_id="b",
            tools=[inner.as_tool(preserve_context=True)], callback_handler=None,
        )  # fmt: skip
        return graph(*LINE, b=outer)

    thread = StrandsThread(made)
    await thread.run("Go.")
    ended = await thread.run(answers={thread.waiting[0].id: "yes"})
    assert ended is not None
    assert done == ["a", "deep yes", "c"]


@tool(context=True)
def approve(note: str, tool_context: ToolContext) -> str:
    """Approve."""
    done.append(f"{note} {tool_context.interrupt('approve', reason=note)}")
    return note


async def test_one_answer_never_counts_for_two_calls_that_have_the_same_id() -> None:
    def graph() -> Graph:
        builder = GraphBuilder()
        for name in ("a", "b"):
            # Both models, which have one script, give their first call one id, and both tools ask by the same name.
            model = ScriptedModel([call("approve", note="it"), "It is done."])
            builder.add_node(Agent(name=name, model=model, tools=[approve], callback_handler=None), name)
        builder.set_execution_timeout(60)
        return builder.build()

    thread = StrandsThread(graph)
    for given in ("Go.", "Again."):
        with pytest.raises(RunFailed, match="one answer would count for both"):
            await thread.run(given)
    with pytest.raises(InvalidInput, match="nothing to go on with"):
        await thread.run()
    assert (thread.waiting, done) == ([], [])


async def test_nor_for_two_calls_of_one_reply() -> None:
    class Named(ScriptedModel):
        """Takes a tool's name for its id."""

        async def stream(self, *args: Any, **options: Any) -> Any:
            async for event in super().stream(*args, **options):
                if "contentBlockStart" in event and "toolUse" in event["contentBlockStart"]["start"]:
                    event["contentBlockStart"]["start"]["toolUse"]["toolUseId"] = "ask"
                yield event

    script = [[call("ask", note="x"), call("ask", note="y")], "Done."]
    thread = StrandsThread(lambda: Agent(model=Named(script), tools=[ask], callback_handler=None))
    with pytest.raises(RunFailed, match="one answer would count for both"):
        await thread.run("Go.")
    assert (thread.waiting, done) == ([], [])
