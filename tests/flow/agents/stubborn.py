"""A graph whose second node is blocked, and hears no signal that a process can refuse to hear."""

import signal

from agents import signs
from agents.effects import effect
from agents.two_steps import State, two_steps


def second(state: State) -> State:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    effect("began second")
    while not signs.sign("repaired").exists():
        pass  # it does not even let other threads work for long
    return {"result": "repaired"}


graph = two_steps(second)
