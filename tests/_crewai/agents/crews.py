"""Crews as users write them, with a model that needs no network."""

import os
import sys

from crewai import Agent, Crew, Process, Task
from crewai.project import CrewBase, agent, task
from crewai.project import crew as crew_of
from crewai.tasks.conditional_task import ConditionalTask
from crewai.tools import tool
from pydantic import BaseModel

from agents.effects import effect
from agents.signs import sign, wait_for
from agentvisor.testing.crewai import ScriptedLLM
from agentvisor.testing.script import call


class Order(BaseModel):
    number: str
    total: float


@tool
def look_up(order: str) -> str:
    """Find an order."""
    effect(f"looked up {order}")
    return '{"number": "7", "total": 12.5}'


@tool
def book(order: str) -> str:
    """Book a refund."""
    effect("began booking")
    if sign("hold").exists():
        wait_for("gate")
    effect("booked")
    return "booked"


class Model(ScriptedLLM):
    """Tells what it is asked, so that a test sees what a task knew of those before it."""

    def call(self, messages, *rest, **named):
        told = str(messages[-1]["content"])
        if "Find the order" in told:
            effect("asked to find")
        if "Tell the customer" in told:
            effect(f"told with {'booked' if 'booking done' in told else 'nothing'}")
        return super().call(messages, *rest, **named)


SCRIPTS = {
    "Find the order": [call("look_up", order="7"), '{"number": "7", "total": 12.5}'],
    "Book the refund": [call("book", order="7"), "booking done"],
    "Tell the customer": ["Dear customer, it is done."],
    "Draft a letter": ["first draft", "second draft", "third draft"],
    "Draft a note": ["first note", "second note"],
}


def clerk(role: str = "clerk", **more) -> Agent:
    model = Model(SCRIPTS)
    return Agent(role=role, goal="serve", backstory="long", llm=model, max_retry_limit=0, **more)


def desk_tasks(by: Agent) -> list[Task]:
    find = Task(
        description="Find the order {order}",
        expected_output="the order",
        agent=by,
        tools=[look_up],
        output_pydantic=Order,
    )
    booking = Task(description="Book the refund", expected_output="a booking", agent=by, tools=[book], context=[find])
    tell = Task(
        description="Tell the customer", expected_output="a letter", agent=by, context=[find, booking], name="tell"
    )
    return [find, booking, tell]


by = clerk()
tasks = desk_tasks(by)
if sign("changed").exists() if "AGENTVISOR_THREAD_ID" in os.environ else False:
    tasks[0] = Task(description="Find the parcel", expected_output="the order", agent=by, tools=[look_up])
crew = Crew(agents=[by], tasks=tasks, name="desk", stream=True)


@CrewBase
class Written:
    """A crew as CrewAI's templates write it."""

    agents_config = None
    tasks_config = None

    @agent
    def writer(self) -> Agent:
        return clerk("writer")

    @task
    def tell(self) -> Task:
        return Task(description="Tell the customer", expected_output="a letter", agent=self.writer())

    @crew_of
    def crew(self) -> Crew:
        return Crew(agents=self.agents, tasks=self.tasks)


def beside() -> Crew:
    """Two tasks side by side, then one that needs both."""
    one, two, three = clerk("one"), clerk("two"), clerk("three")
    find = Task(description="Find the order 7", expected_output="o", agent=one, tools=[look_up], async_execution=True)
    booking = Task(description="Book the refund", expected_output="b", agent=two, tools=[book], async_execution=True)
    tell = Task(description="Tell the customer", expected_output="l", agent=three, context=[find, booking])
    return Crew(agents=[one, two, three], tasks=[find, booking, tell])


def managed() -> Crew:
    """A manager does the tasks, or has them done."""
    workers = [clerk("worker")]
    tasks = [
        Task(description="Find the order 7", expected_output="o", tools=[look_up]),
        Task(description="Book the refund", expected_output="b", tools=[book]),
    ]
    return Crew(agents=workers, tasks=tasks, process=Process.hierarchical, manager_llm=Model(SCRIPTS))


def conditional() -> Crew:
    """The second task is skipped, the third is not."""
    by = clerk()
    find = Task(description="Find the order 7", expected_output="o", agent=by, tools=[look_up])
    never = ConditionalTask(description="Draft a note", expected_output="n", agent=by, condition=lambda _: False)
    always = ConditionalTask(
        description="Book the refund", expected_output="b", agent=by, tools=[book], condition=lambda out: out.raw == ""
    )
    return Crew(agents=[by], tasks=[find, never, always])


def fails() -> Crew:
    """The second task's callback raises, until it is told not to."""
    by = clerk()
    find = Task(description="Find the order 7", expected_output="o", agent=by, tools=[look_up])

    def checked(_output):
        if not sign("mended").exists():
            raise ValueError("the letter is not good")

    tell = Task(description="Tell the customer", expected_output="l", agent=by, callback=checked)
    return Crew(agents=[by], tasks=[find, tell])


def asks() -> Crew:
    """A person looks at the letter."""
    by = clerk()
    find = Task(description="Find the order 7", expected_output="o", agent=by, tools=[look_up])
    draft = Task(description="Draft a letter", expected_output="l", agent=by, human_input=True)
    return Crew(agents=[by], tasks=[find, draft])


def both_ask() -> Crew:
    """Two people look at two things at the same time."""
    one, two, three = clerk("one"), clerk("two"), clerk("three")
    letter = Task(description="Draft a letter", expected_output="l", agent=one, human_input=True, async_execution=True)
    note = Task(description="Draft a note", expected_output="n", agent=two, human_input=True, async_execution=True)
    tell = Task(description="Tell the customer", expected_output="t", agent=three, context=[letter, note])
    return Crew(agents=[one, two, three], tasks=[letter, note, tell])


def keyed() -> Crew:
    """CrewAI's own checkpoints are asked for, and the model has a key."""
    by = clerk()
    by.llm = Model(SCRIPTS, api_key=os.environ["CANARY"], base_url="http://localhost:1")
    find = Task(description="Find the order 7", expected_output="o", agent=by, tools=[look_up])
    draft = Task(description="Draft a letter", expected_output="l", agent=by, human_input=True)
    print("says", by.llm.api_key[:3], file=sys.stderr)
    return Crew(agents=[by], tasks=[find, draft], checkpoint=True)
