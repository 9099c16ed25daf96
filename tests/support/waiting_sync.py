"""`until` for tests without an event loop."""

import time
from collections.abc import Callable

PAUSE = 0.02


def until(condition: Callable[[], object], *, seconds: float = 20.0, pause: float = PAUSE) -> None:
    """Return once the condition holds; look again after `pause` seconds. `AssertionError` after the deadline."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"did not come true in {seconds:g} s")
        time.sleep(pause)
