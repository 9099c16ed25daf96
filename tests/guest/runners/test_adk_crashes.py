"""An agent of ADK whose process dies between any two writes ends as if it had not, and does nothing finished again."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

import pytest
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from tests._adk.thread_state_double import Died
from tests.guest.runners import adk_agents
from tests.guest.runners.adk_agents import DID, SHAPES
from tests.guest.runners.adk_running import Thread

from agentvisor.testing import call

pytestmark = pytest.mark.thorough

ANSWERS = {"confirmation": True, "result": "sent", "input": {"n": 1}}


@pytest.fixture(autouse=True)
def quiet() -> Generator[None]:
    # ADK logs each death with its traceback, and each step's cost.
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def played(make: Callable[[], Any], left: int | None, order: int = 1) -> tuple[Thread, Any, list[str], list[str]]:
    """A conversation to its end: the thread, the last output, what was done, and what was said."""
    DID.clear()
    thread = Thread(make)
    thread.state.left = left
    ended, output = thread.run("go")
    for _ in range(5):
        if ended == "completed":
            break
        asked = thread.channel.waiting[::order]
        # One at a time: the rest wait for each other.
        for one in asked:
            ended, output = thread.run(answers={one["id"]: ANSWERS[one["kind"]]})
    assert ended == "completed", (DID, thread.channel.waiting)
    session = asyncio.run(thread.session())
    said = [
        f"{event.author}: {part.text}"
        for event in session.events
        if event.content
        for part in event.content.parts or []
        if part.text
    ]
    return thread, output, list(DID), said


IN_BOTH_ORDERS = [
    adk_agents.confirmations_in_sequence,
    adk_agents.confirmations_in_parallel,
    adk_agents.workflow_in_parallel,
]


@pytest.mark.parametrize(
    "make, order",
    [*((make, 1) for make in SHAPES), *((make, -1) for make in IN_BOTH_ORDERS)],
    ids=lambda given: getattr(given, "__name__", "backwards" if given == -1 else "forwards"),
)
def test_a_death_between_any_two_writes_changes_nothing(make: Callable[[], Any], order: int) -> None:
    thread, output, did, said = played(make, None, order)
    assert thread.attempts == thread.runs
    for left in range(thread.state.writes):
        again, output_again, did_again, said_again = played(make, left, order)
        where = f"died after {left} of {thread.state.writes} writes: {did_again}"
        assert again.attempts == again.runs + 1, where
        assert output_again == output, where
        assert sorted(said_again) == sorted(said), where
        repeated = Counter(did_again) - Counter(did)
        # What was under way when it died may be done again: an answer of a model, or its two calls.
        assert repeated.total() <= 2, where
        assert not Counter(did) - Counter(did_again), where


def test_a_long_running_tool_whose_process_died_before_it_did_anything_is_called_again() -> None:
    deaths: list[str] = []

    def order(note: str) -> None:
        """Order."""
        if not deaths:
            deaths.append(note)
            raise Died
        DID.append(f"ordered {note}")

    DID.clear()
    script = [[call("pay", note="1"), call("order", note="1")], "done"]
    thread = Thread(lambda: adk_agents.agent("a", script, adk_agents.pay, LongRunningFunctionTool(order)))
    assert thread.run("go") == ("paused", None)
    assert DID.count("ordered 1") == 1
    (asked,) = thread.channel.waiting
    assert thread.run(answers={asked["id"]: "sent"}) == ("completed", "done")
    assert DID.count("ordered 1") == 1
    assert "paid 1" in DID


def test_both_answers_reach_agents_that_run_side_by_side() -> None:
    for order in (1, -1):
        _, _, did, said = played(adk_agents.confirmations_in_parallel, None, order)
        assert {"paid 1", "paid 2"} <= set(did)
        assert {"a: a done", "b: b done"} <= set(said)
