"""Whatever runs come after one another, and wherever they die: each input is in once, each answer counts once."""

import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from strands import Agent, ToolContext, tool
from tests.support.strands_thread import StrandsThread

from agentvisor.core.errors import InvalidInput
from agentvisor.guest.runners.strands_result import RunFailed
from agentvisor.testing import call
from agentvisor.testing.strands import ScriptedModel

pytestmark = pytest.mark.thorough

did: Counter[str] = Counter()
breaks: list[str] = []


@tool
def work(note: str) -> str:
    """Work."""
    did[f"worked {note}"] += 1
    return "worked"


@tool(context=True)
def ask(note: str, tool_context: ToolContext) -> str:
    """Ask."""
    answer = tool_context.interrupt(f"about {note}", reason=note)
    did[f"{note} {answer}"] += 1
    return str(answer)


class Broken(Exception):
    """What the model raises here; whatever else is raised is a fault of ours."""


class Model(ScriptedModel):
    """Does what the last input says, one tool call after the other, and refuses a conversation as a provider does."""

    async def stream(self, messages: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
        texts = [at for at, one in enumerate(messages) if "text" in one["content"][0] and one["role"] == "user"]
        said = messages[texts[-1]]["content"][0]["text"]
        after = sum(one["role"] == "assistant" for one in messages[texts[-1] :])
        if breaks and said.startswith("fail") and after == int(said[4]):
            raise Broken(breaks.pop())
        kinds = {"work": "work", "both": "ask work", "asks": "ask ask", "fail": "work"}.get(said[:4], "")
        calls = [call(kind, note=f"{said}.{number}") for number, kind in enumerate(kinds.split())]
        self._script = [""] * sum(one["role"] == "assistant" for one in messages)
        self._script += [calls if calls and not after else f"{said} is done."]
        async for event in super().stream(messages, *args, **options):
            yield event


def made() -> Agent:
    return Agent(model=Model([]), tools=[work, ask], callback_handler=None)


def inputs(thread: StrandsThread) -> list[str]:
    return [
        block["text"]
        for one in thread.last("strands")["messages"]
        if one["role"] == "user"
        for block in one["content"]
        if "text" in block
    ]


class Walk:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.thread = StrandsThread(made)
        self.number = 0
        self.failed: set[str] = set()
        self.deaths = 0
        self.abandoned = 0
        """How many reports there were when questions were given up: until another comes, the host says that."""

    async def step(self) -> None:
        answers = None
        if self.thread.waiting and not self.forgets and self.chance.random() < 0.7:
            asked = self.chance.sample(self.thread.waiting, self.chance.randint(1, len(self.thread.waiting)))
            answers = {one.id: f"yes {self.number}" for one in asked}
            given = None
        else:
            given = f"{self.chance.choice(['says', 'work', 'both', 'asks', 'fail0', 'fail1'])} {self.number}"
            if self.thread.waiting:
                self.abandoned = len(self.thread.reports)
        self.number += 1
        await self.run(f"r{self.number}", given, answers)

    @property
    def forgets(self) -> bool:
        return 0 < self.abandoned == len(self.thread.reports)

    async def run(self, run_id: str, given: str | None, answers: dict[str, Any] | None) -> None:
        """One run, with as many attempts as it takes, or as many as it gets."""
        breaks[:] = ["the model is gone"]
        while True:
            dies = self.chance.choice([0, 0, 1, 2, 3, 4])
            try:
                ended = await self.thread.run(given, answers, run_id=run_id, dies_after=dies, forgets=self.forgets)
            except InvalidInput:
                # What it answers was answered by a run that died before it could say so; now it is said.
                assert self.deaths
                assert answers is not None
                assert not set(answers) & {one.id for one in self.thread.waiting}
                return
            except (Broken, RunFailed):
                if given is not None:
                    self.failed.add(given)
                return
            if ended is not None:
                break
            self.deaths += 1
            if self.chance.random() < 0.3:
                return  # no restart is left: the next run comes
        assert ended.paused == bool(self.thread.waiting)
        texts = inputs(self.thread)
        assert len(texts) == len(set(texts)), texts
        assert given is None or texts[-1] == given
        assert not self.failed & set(texts)
        if ended.completed:
            assert ended.output["text"] == f"{texts[-1]} is done."
        assert all(times == 1 or self.deaths for times in did.values()), did


@pytest.mark.parametrize("seed", range(40))
async def test_each_input_is_in_once_and_each_answer_counts_once(seed: int) -> None:
    did.clear()
    walk = Walk(seed)
    for _ in range(12):
        await walk.step()
