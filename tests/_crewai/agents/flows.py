"""Flows as users write them."""

import threading
from uuid import uuid4

from crewai import Agent, Crew, Task
from crewai.flow.async_feedback.types import HumanFeedbackPending
from crewai.flow.flow import Flow, and_, listen, or_, router, start
from crewai.flow.human_feedback import human_feedback
from crewai.flow.persistence import FlowPersistence, persist
from crewai.tools import tool
from crews import Order, clerk, desk_tasks
from pydantic import BaseModel

from agents.effects import effect
from agents.signs import sign, wait_for
from agentvisor.testing.crewai import ScriptedLLM
from agentvisor.testing.script import call


class Count(BaseModel):
    limit: int = 0
    n: int = 0
    seen: list[str] = []


class Counted(Flow[Count]):
    """Two starts, a join, and a cycle through a router."""

    @start()
    def one(self):
        effect("did one")
        self.state.seen.append("one")
        return Order(number="1", total=1.0)

    @start()
    async def two(self):
        effect("did two")
        self.state.seen.append("two")
        return {"two": 2}

    @listen(and_(one, two))
    def joined(self):
        effect("did joined")
        return "joined"

    @router(or_(joined, "again"))
    def step(self):
        effect("did step")
        self.state.n += 1
        if self.state.n == 2:
            effect("began the second")
            if sign("hold").exists():
                wait_for("gate")
        return "again" if self.state.n < self.state.limit else "enough"

    @listen("enough")
    def last(self):
        effect("did last")
        return {"n": self.state.n, "seen": sorted(self.state.seen)}


class Reviewed(Flow):
    """A draft is reviewed, once or more, and then something comes of it."""

    @start()
    def begin(self):
        effect("began")
        return "subject"

    @human_feedback(
        message="Good?",
        emit=["approved", "rejected"],
        llm=ScriptedLLM(["rejected"], api_key="sk-CANARY-of-the-flow"),
        default_outcome="approved",
    )
    @listen(or_(begin, "rejected"))
    def draft(self, given):
        effect("drafted")
        self.state["drafts"] = self.state.get("drafts", 0) + 1
        return {"text": f"draft {self.state['drafts']}"}

    @listen("approved")
    def sent(self, feedback):
        effect("sent")
        return {"sent": feedback.output, "said": feedback.feedback, "outcome": feedback.outcome}


def review() -> Flow:
    """A function that makes one."""
    return Reviewed()


@persist()
class Persisted(Flow[Count]):
    """Remembers how often it ran."""

    @start()
    def count(self):
        self.state.n += 1
        return {"n": self.state.n, "id": self.state.id}


class Holds(Flow[Count]):
    """Its method runs a flow that is persisted, under a name of its own."""

    @start()
    def count(self):
        by_itself = Persisted().kickoff()
        named = Persisted().kickoff(inputs={"id": "cart-7"})
        return {"by itself": by_itself["n"], "named": named["n"]}


class Notifier:
    """A provider that tells people, and does not wait."""

    def request_feedback(self, context, flow):
        effect("notified")
        raise HumanFeedbackPending(context=context)


class Elsewhere(FlowPersistence):
    def init_db(self):
        """Nothing."""

    def save_state(self, flow_uuid, method_name, state_data):
        effect("saved elsewhere")

    def load_state(self, flow_uuid):
        return None


@persist(Elsewhere())
class Notified(Flow[Count]):
    """Has a provider and a persistence of its own."""

    @start()
    @human_feedback(message="Good?", provider=Notifier())
    def draft(self):
        self.state.n += 1
        return "a draft"

    @listen(draft)
    def told(self, feedback):
        return {"said": feedback.feedback, "of": feedback.output, "n": self.state.n}


class Asked(Flow):
    """Asks in the middle of a method."""

    @start()
    def talk(self):
        name = self.ask("Your name?")
        colour = self.ask("Your colour?")
        effect(f"heard {name} {colour}")
        return {"name": name, "colour": colour}


class WithCrew(Flow):
    """Its method starts a crew."""

    @start()
    def serve(self):
        by = clerk()
        return Crew(agents=[by], tasks=desk_tasks(by), name="inner").kickoff(inputs={"order": "7"})

    @listen(serve)
    def report(self, output):
        effect("reported")
        return {"raw": output.raw, "number": output.tasks_output[0].pydantic.number}


class Checked(Flow):
    """Is started by others, and asks."""

    @start()
    @human_feedback(message="Good?")
    def draft(self):
        effect("drafted")
        self.state["drafts"] = 1
        return f"draft {uuid4()}"

    @listen(draft)
    def told(self, feedback):
        effect("told")
        return {"said": feedback.feedback, "of": feedback.output, "drafts": self.state["drafts"]}


class Starts(Flow):
    """Its method starts a flow that asks, and works with what that gives."""

    @start()
    async def begin(self):
        return dict(await Checked().kickoff_async())


@tool
def check(order: str) -> str:
    """Have an order checked."""
    return Checked().kickoff()["said"]


def checks() -> Crew:
    """A crew with a tool that starts a flow that asks."""
    by = Agent(role="clerk", goal="g", backstory="b", llm=ScriptedLLM([call("check", order="7"), "It is checked."]))
    return Crew(agents=[by], tasks=[Task(description="Check", expected_output="x", agent=by, tools=[check])])


class Odd(Flow):
    """Its method returns what cannot be kept."""

    @start()
    def odd(self):
        return {"lock": threading.Lock()}
