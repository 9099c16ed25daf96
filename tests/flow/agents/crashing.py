"""A graph whose second node ends its process by SIGSEGV until the sign "repaired" is there."""

import os
import signal

from agents import signs
from agents.effects import effect
from agents.two_steps import State, two_steps


def second(state: State) -> State:
    effect("began second")
    if not signs.sign("repaired").exists():
        os.kill(os.getpid(), signal.SIGSEGV)
    return {"result": "repaired"}


graph = two_steps(second)
