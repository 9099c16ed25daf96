"""The runner contract's agent as a flow of CrewAI (test_runner_contract.py says what it has to do)."""

from crewai.flow.flow import Flow, and_, listen, router, start
from crewai.flow.persistence import persist
from pydantic import BaseModel

from agents import contract_steps as steps
from agentvisor.testing.crewai import ScriptedLLM


class Heard(BaseModel):
    id: str = ""
    say: str = ""
    heard: list[str] = []
    left: str | None = None
    right: str | None = None


@persist()
class Talk(Flow[Heard]):
    @start()
    def hear(self):
        steps.begun()
        self.state.heard = [*self.state.heard, self.state.say]

    @router(hear)
    def which(self):
        return self.state.say

    @listen("fail")
    def failing(self):
        steps.fail()

    @listen("keep")
    def keeping(self):
        return {"what": steps.UNKEEPABLE}

    @listen("wait")
    def waiting(self):
        steps.wait()

    @listen("ask")
    def ask_which(self):
        return {"reply": f"heard {self.ask('Which?')}"}

    @listen("ask two")
    def left(self):
        self.state.left = self.ask("left?")

    @listen("ask two")
    def right(self):
        self.state.right = self.ask("right?")

    @listen(and_(left, right))
    def both(self):
        return {"reply": f"heard left {self.state.left}, right {self.state.right}"}

    @listen("die")
    def first(self):
        steps.first()

    @listen(first)
    def second(self):
        return {"reply": steps.second()}

    @listen("stream")
    def tells(self):
        ScriptedLLM([" ".join(steps.WORDS)], stream=True).call("Say it")

    @listen(which)
    def reply(self):
        return {"reply": f"{len(self.state.heard)}: {self.state.say}"}


agent = Talk
