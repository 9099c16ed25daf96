"""A graph whose second node fails, by an exception or an exit, until the sign "repaired" is there."""

import sys

from agents import signs
from agents.effects import effect
from agents.two_steps import State, two_steps


def second(state: State) -> State:
    effect("began second")
    if not signs.sign("repaired").exists():
        if state["ends"] == "exit":
            sys.exit(3)
        raise LookupError("no customer 42")
    effect("did second")
    return {"result": "repaired"}


graph = two_steps(second)
