"""Whatever becomes of a graph's runs, in whatever order: every node has its turn in each task, finished ones once."""

import random
import re
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from strands import Agent, ToolContext, tool
from strands.multiagent import GraphBuilder
from strands.multiagent.graph import Graph
from tests.support.strands_thread import StrandsThread

from agentvisor.core.errors import InvalidInput
from agentvisor.guest.runners.strands_result import RunFailed
from agentvisor.testing import call
from agentvisor.testing.strands import ScriptedModel

pytestmark = pytest.mark.thorough

turns: Counter[str] = Counter()
"""Turns of nodes that have ended, by task."""
breaks: list[str] = []


@tool(context=True)
def ask(note: str, tool_context: ToolContext) -> str:
    """Ask."""
    return str(tool_context.interrupt(f"about {note}", reason=note))


class Broken(Exception):
    """What a model raises here; whatever else is raised is a fault of ours."""


class Model(ScriptedModel):
    """Does what the task says of its node: "7 b:ask c:fail"."""

    def __init__(self, name: str) -> None:
        super().__init__([])
        self.name = name

    async def stream(self, messages: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
        text = " ".join(block["text"] for block in messages[0]["content"] if "text" in block)
        told = re.search(r"task (\d+)((?: \w:\w+)*)", text)
        assert told is not None
        does = dict(one.split(":") for one in told[2].split())
        if does.get(self.name) == "fail" and breaks:
            raise Broken(breaks.pop())
        asks = does.get(self.name) == "ask" and len(messages) == 1
        self._script = [""] * sum(one["role"] == "assistant" for one in messages)
        self._script.append(call("ask", note=f"{told[1]}{self.name}") if asks else f"{self.name} is done.")
        if not asks:
            turns[f"{told[1]} {self.name}"] += 1
        async for event in super().stream(messages, *args, **options):
            yield event


def made() -> Graph:
    builder = GraphBuilder()
    inner = GraphBuilder()
    for name in "xy":
        inner.add_node(node(name), name)
    inner.add_edge("x", "y")
    inner.set_graph_id("inner")
    for name in "abd":
        builder.add_node(node(name), name)
    builder.add_node(inner.build(), "c")
    for source, target in ("ab", "ac", "bd", "cd"):
        builder.add_edge(source, target)
    builder.set_entry_point("a")
    return builder.build()


def node(name: str) -> Agent:
    return Agent(model=Model(name), name=name, agent_id=name, tools=[ask], callback_handler=None)


class Walk:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.thread = StrandsThread(made)
        self.runs = 0
        self.task = 0
        self.lost: Counter[int] = Counter()
        """Per task: how often its work may have been cut off in the middle of a node."""
        self.abandoned = 0

    @property
    def forgets(self) -> bool:
        return 0 < self.abandoned == len(self.thread.reports)

    async def step(self) -> None:
        self.runs += 1
        answers = given = None
        if self.thread.waiting and not self.forgets and self.chance.random() < 0.8:
            asked = self.chance.sample(self.thread.waiting, self.chance.randint(1, len(self.thread.waiting)))
            answers = {one.id: "yes" for one in asked}
        elif self.task and self.chance.random() < 0.4 and not self.thread.waiting:
            pass  # the run goes on with whatever there is
        else:
            self.task += 1
            does = self.chance.sample(["b:ask", "y:ask", "x:ask", "d:fail", "y:fail", "b:fail"], 2)
            given = f"task {self.task} {' '.join(does)}"
            if self.thread.waiting:
                self.abandoned = len(self.thread.reports)
        await self.run(given, answers)

    async def run(self, given: str | None, answers: dict[str, Any] | None) -> None:
        breaks[:] = ["broken"]
        while True:
            dies = self.chance.choice([0, 0, 0, 1, 2, 3, 4])
            run_id = f"r{self.runs}"
            try:
                ended = await self.thread.run(given, answers, run_id=run_id, dies_after=dies, forgets=self.forgets)
            except InvalidInput:
                assert given is None
                return
            except (Broken, RunFailed):
                self.lost[self.task] += 1
                return
            if ended is not None:
                break
            self.lost[self.task] += 1
            if self.chance.random() < 0.3:
                return
        assert ended.paused == bool(self.thread.waiting)
        for name in "abxyd" if ended.completed else "":
            assert 1 <= turns[f"{self.task} {name}"] <= 1 + self.lost[self.task], (name, turns)
        if ended.completed:
            assert ended.output["status"] == "completed"
            assert set(ended.output["order"]) == set("abcd")


@pytest.mark.parametrize("seed", range(25))
async def test_every_node_has_its_turn_and_finished_ones_are_not_run_again(seed: int) -> None:
    turns.clear()
    walk = Walk(seed)
    for _ in range(8):
        await walk.step()
