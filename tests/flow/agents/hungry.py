"""A graph whose second node uses ever more memory until the sign "repaired" is there."""

import time

from agents import signs
from agents.effects import effect
from agents.two_steps import State, two_steps

MOST = 1 << 30
STEP = 8 << 20


def second(state: State) -> State:
    effect("began second")
    if not signs.sign("repaired").exists():
        kept = []
        for _ in range(0, MOST, STEP):
            kept.append(b"x" * STEP)
            time.sleep(0.001)
        time.sleep(20)
    return {"result": "repaired"}


graph = two_steps(second)
