"""What every scenario is: a name, and what it says to a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.oracle.speaking import Conversation

Scenario = Callable[[Conversation], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """A scenario, by the function's name."""
    assert function.__name__ not in SCENARIOS, f"two scenarios are called {function.__name__}"
    SCENARIOS[function.__name__] = function
    return function
