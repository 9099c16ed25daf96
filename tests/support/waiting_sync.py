"""`until` for tests without an event loop."""

import time
from collections.abc import Callable

PAUSE = 0.02


def until(condition: Callable[[], object], *, seconds: float = 20.0) -> None:
    """Return once the condition holds. `AssertionError` after the deadline."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"did not come true in {seconds:g} s")
        time.sleep(PAUSE)
