"""A crew that refunds an order: it finds the order, books the refund, and lets a person look at the letter.

Without a key it runs offline, with a model that says what a script says. With OPENAI_API_KEY set, CrewAI asks OpenAI.
"""

import os
import time
from pathlib import Path

from crewai import Agent, Crew, Task
from crewai.tools import tool
from pydantic import BaseModel

from agentvisor.testing.crewai import ScriptedLLM
from agentvisor.testing.script import call


class Order(BaseModel):
    number: str
    total: float


@tool
def look_up(order: str) -> str:
    """Find an order by its number."""
    note(f"looked up {order}")
    return Order(number=order, total=12.5).model_dump_json()


@tool
def book(order: str) -> str:
    """Book the refund of an order."""
    note(f"began to book {order}")
    time.sleep(1)
    note(f"booked {order}")
    return "booked"


def note(line: str) -> None:
    with Path("ledger.txt").open("a") as ledger:
        ledger.write(f"{line}\n")


def model():
    if os.environ.get("OPENAI_API_KEY"):
        return os.environ.get("OPENAI_MODEL_NAME", "gpt-4.1-mini")
    return ScriptedLLM(
        {
            "Find order": [call("look_up", order="7"), '{"number": "7", "total": 12.5}'],
            "Book the refund": [call("book", order="7"), "The refund is booked."],
            "Write to the customer": ["Your refund is on its way.", "Your refund of 12.50 is on its way."],
        }
    )


clerk = Agent(role="clerk", goal="refund what is to be refunded", backstory="ten years at the desk", llm=model())

find = Task(
    description="Find order {order}.",
    expected_output="the order's number and total",
    agent=clerk,
    tools=[look_up],
    output_pydantic=Order,
)
booking = Task(
    description="Book the refund.",
    expected_output="whether it is booked",
    agent=clerk,
    tools=[book],
    context=[find],
)
letter = Task(
    description="Write to the customer.",
    expected_output="a letter of one sentence",
    agent=clerk,
    context=[find, booking],
    human_input=True,
)

crew = Crew(agents=[clerk], tasks=[find, booking, letter])
