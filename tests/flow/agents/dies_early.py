"""The five nodes, in a process that is killed so many microseconds after its agent began to be imported.

The sign "delays" has one number for each attempt that is to die.
"""

import os
import threading
import time

from agents import operations, signs


def kill_later() -> None:
    delays = [int(one) for one in signs.read("delays").split()]
    attempt = int(os.environ["AGENTVISOR_ATTEMPT"])
    if attempt <= len(delays):
        threading.Thread(target=_kill, args=(delays[attempt - 1],), daemon=True).start()


def _kill(microseconds: int) -> None:
    time.sleep(microseconds / 1_000_000)
    operations.die()


kill_later()

from agents.five_nodes import graph  # noqa: E402, F401 (after the clock has started)
