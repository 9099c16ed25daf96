"""A run that dies at any call of its saver and is started again ends as if nothing had happened."""

import itertools
import operator
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt

from agentvisor.core.errors import Conflict
from agentvisor.guest.runners.langgraph_resume import invocation

pytestmark = pytest.mark.thorough


class Killed(BaseException):
    """The process is dead: nothing that it does from now on reaches the store."""


class Mortal(InMemorySaver):
    """Dies at its n-th write: before it is stored, or right after."""

    def __init__(self) -> None:
        super().__init__()
        self.left: float = float("inf")
        self.stores_first = False
        self.dead = False

    def lives(self, left: float, *, stores_first: bool) -> None:
        self.left, self.stores_first, self.dead = left, stores_first, False

    def put(self, *args: Any) -> Any:
        return self._write(lambda: super(Mortal, self).put(*args))

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self._write(lambda: super(Mortal, self).put_writes(config, writes, task_id, task_path))

    def _write(self, write: Callable[[], Any]) -> Any:
        if self.dead:
            raise Killed
        self.left -= 1
        if self.left >= 0:
            return write()
        if self.stores_first:
            write()
        self.dead = True
        raise Killed


@dataclass
class Turn:
    """One run of a caller."""

    given: Any = None
    command: Mapping[str, Any] | Callable[[list[Any]], Mapping[str, Any]] | None = None
    """A command, or how to make it of the interrupts that wait."""
    at: Callable[[Any], Awaitable[Mapping[str, Any]]] | None = None
    """Where it goes on from, of a graph."""


@dataclass
class Caller:
    """Makes runs on one thread, as the runner does; one of them is killed, and started again."""

    graph: Any
    saver: Mortal
    results: list[Any] = field(default_factory=list)

    async def make(
        self, turns: list[Turn], kill_turn: int = -1, kills: tuple[int, ...] = (), *, stores_first: bool = False
    ) -> bool:
        """Kill that turn's attempts at these writes; whether each was: there may be fewer writes in it."""
        killed = 0
        for index, turn in enumerate(turns):
            command = turn.command
            if callable(command):
                state = await self.graph.aget_state({"configurable": {"thread_id": "t"}})
                command = command(list(state.interrupts))
            at = await turn.at(self.graph) if turn.at is not None else {}
            limits = [*(kills if index == kill_turn else ()), float("inf")]
            for attempt, left in enumerate(limits, 1):
                self.saver.lives(left, stores_first=stores_first)
                try:
                    self.results.append(await self.attempt(turn.given, command, f"run{index}", attempt, at))
                    break
                except Killed:
                    killed += 1
        return killed == len(kills)

    async def attempt(self, given: Any, command: Any, run_id: str, attempt: int, at: Mapping[str, Any]) -> Any:
        config: Any = {"configurable": {"thread_id": "t", **at}, "metadata": {"run_id": run_id}}
        call = await invocation(self.graph, config, given, command, run_id=run_id, attempt=attempt)
        result = await self.graph.ainvoke(call.input, call.config, durability="sync")
        # Tasks that ask at once are told in the order in which they stopped.
        asked = sorted(one.value for one in result.get("__interrupt__", []))
        return {key: value for key, value in result.items() if key != "__interrupt__"}, asked


class State(TypedDict):
    messages: Annotated[list[Any], add_messages]
    answers: Annotated[list[Any], operator.add]


def log(text: str) -> Callable[[Any], Any]:
    return lambda _: {"answers": [text]}


def asks(*questions: str) -> Callable[[Any], Any]:
    return lambda _: {"answers": [(question, interrupt(question)) for question in questions]}


def interview(saver: Mortal) -> Any:
    """One task asks twice, beside one that does not; then another asks."""
    builder = StateGraph(State)
    builder.add_node("ask", asks("q1", "q2"))
    builder.add_node("beside", log("beside"))
    builder.add_node("then", asks("q3"))
    builder.add_edge(START, "ask")
    builder.add_edge(START, "beside")
    builder.add_edge(["ask", "beside"], "then")
    return builder.compile(checkpointer=saver)


def panel(saver: Mortal) -> Any:
    """Two tasks ask at once, each twice."""
    builder = StateGraph(State)
    builder.add_node("left", asks("l1", "l2"))
    builder.add_node("right", asks("r1", "r2"))
    builder.add_edge(START, "left")
    builder.add_edge(START, "right")
    return builder.compile(checkpointer=saver)


def nested(saver: Mortal) -> Any:
    """The one that asks sits two graphs deep."""
    inner = StateGraph(State)
    inner.add_node("ask", asks("q1", "q2"))
    inner.add_edge(START, "ask")
    middle = StateGraph(State)
    middle.add_node("inner", inner.compile())
    middle.add_edge(START, "inner")
    outer = StateGraph(State)
    outer.add_node("middle", middle.compile())
    outer.add_node("then", log("then"))
    outer.add_edge(START, "middle")
    outer.add_edge("middle", "then")
    return outer.compile(checkpointer=saver)


def conversation(saver: Mortal) -> Any:
    builder = StateGraph(State)
    builder.add_node("model", lambda state: {"messages": [("ai", f"heard {len(state['messages'])}")]})
    builder.add_node("tool", log("tool"))
    builder.add_edge(START, "model")
    builder.add_edge("model", "tool")
    return builder.compile(checkpointer=saver)


async def test_an_answer_to_what_does_not_wait_any_more_is_refused_and_leaves_no_trace() -> None:
    """LangGraph would silently ignore it."""
    saver = Mortal()
    caller = Caller(panel(saver), saver)
    await caller.make([Turn(START_INPUT)])
    config: Any = {"configurable": {"thread_id": "t"}, "metadata": {"run_id": "late"}}
    before = await caller.graph.aget_state(config)
    waiting = [one.id for one in before.interrupts]
    for answers in (["0" * 32], [waiting[0], "0" * 32]):
        command = {"resume": dict.fromkeys(answers, "late")}
        with pytest.raises(Conflict, match=f"{'0' * 32} does not wait"):
            await invocation(caller.graph, config, None, command, run_id="late", attempt=1, answers=answers)
    assert await caller.graph.aget_state(config) == before
    call = await invocation(
        caller.graph, config, None, {"resume": {waiting[0]: 1}}, run_id="late", attempt=1, answers=waiting[:1]
    )
    assert call.input is not None


def by_id(answer: str) -> Callable[[list[Any]], Mapping[str, Any]]:
    return lambda waiting: {"resume": {one.id: f"{answer}-{one.value}" for one in waiting}}


def first_only(answer: str) -> Callable[[list[Any]], Mapping[str, Any]]:
    return lambda waiting: {"resume": {waiting[0].id: f"{answer}-{waiting[0].value}"}}


async def innermost(graph: Any) -> Mapping[str, Any]:
    """Where the subgraph of the subgraph waits."""
    state = await graph.aget_state({"configurable": {"thread_id": "t"}}, subgraphs=True)
    while state.tasks and getattr(state.tasks[0].state, "config", None):
        state = state.tasks[0].state
    return dict(state.config["configurable"])


async def its_beginning(graph: Any) -> Mapping[str, Any]:
    """Where it was before its node ran for the first time."""
    here = await innermost(graph)
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": here["checkpoint_ns"]}}
    past = [one async for one in graph.aget_state_history(config)]
    return dict(past[-1].config["configurable"])


START_INPUT = {"messages": [], "answers": []}
SAYS = [Turn({"messages": [("user", text)], "answers": []}) for text in ("one", "two", "three")]

CALLERS: dict[str, tuple[Callable[[Mortal], Any], list[Turn]]] = {
    "inputs": (conversation, SAYS),
    "answers": (interview, [Turn(START_INPUT), *(Turn(command={"resume": text}) for text in ("a1", "a2", "a3"))]),
    # An answer that equals the last one, and one that looks like a map of ids.
    "equal answers": (interview, [Turn(START_INPUT), *(Turn(command={"resume": {"ok": True}}) for _ in range(3))]),
    "answers by id": (panel, [Turn(START_INPUT), Turn(command=by_id("a")), Turn(command=by_id("b"))]),
    "answers one by one": (
        panel,
        [Turn(START_INPUT), *(Turn(command=first_only(text)) for text in "abcd")],
    ),
    "answers deep down": (nested, [Turn(START_INPUT), *(Turn(command={"resume": text}) for text in ("a1", "a2"))]),
    "from deep down": (
        nested,
        [Turn(START_INPUT), Turn(at=innermost), *(Turn(command={"resume": text}) for text in ("a1", "a2"))],
    ),
    "from the beginning deep down": (
        nested,
        [Turn(START_INPUT), Turn(at=its_beginning), *(Turn(command={"resume": text}) for text in ("a1", "a2"))],
    ),
    "an answer where it waits deep down": (
        nested,
        [Turn(START_INPUT), Turn(command={"resume": "a1"}, at=innermost), Turn(command={"resume": "a2"})],
    ),
    "an update with an answer": (
        interview,
        [
            Turn(START_INPUT),
            Turn(command={"resume": "a1", "update": {"answers": ["updated"]}}),
            Turn(command={"resume": "a2", "update": {"answers": ["updated again"]}}),
            Turn(command={"resume": "a3"}),
        ],
    ),
    "a jump": (conversation, [*SAYS[:1], Turn(command={"goto": "tool", "update": {"answers": ["jumped"]}})]),
}


def plain(value: Any) -> Any:
    """Without the ids of messages, which differ."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return getattr(value, "content", value)


@pytest.mark.parametrize("stores_first", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", CALLERS)
async def test_a_run_killed_at_any_write_ends_as_an_undisturbed_one(name: str, *, stores_first: bool) -> None:
    build, turns = CALLERS[name]
    undisturbed = Caller(build(saver := Mortal()), saver)
    await undisturbed.make(turns)
    kills = 0
    for kill_turn in range(len(turns)):
        at = 0
        while True:
            caller = Caller(build(saver := Mortal()), saver)
            if not await caller.make(turns, kill_turn, (at,), stores_first=stores_first):
                break
            assert plain(caller.results) == plain(undisturbed.results), f"turn {kill_turn} killed at write {at}"
            at += 1
        kills += at
    assert kills > len(turns)


@pytest.mark.slow
@pytest.mark.parametrize("stores_first", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", CALLERS)
async def test_a_run_killed_twice_ends_as_an_undisturbed_one(name: str, *, stores_first: bool) -> None:
    build, turns = CALLERS[name]
    undisturbed = Caller(build(saver := Mortal()), saver)
    await undisturbed.make(turns)
    for kill_turn in range(len(turns)):
        for first, second in itertools.product(range(12), repeat=2):
            caller = Caller(build(saver := Mortal()), saver)
            if await caller.make(turns, kill_turn, (first, second), stores_first=stores_first):
                assert plain(caller.results) == plain(undisturbed.results), (kill_turn, first, second)
