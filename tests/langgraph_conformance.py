"""LangGraph's own conformance suite, for any way of getting a saver: base capabilities, every test of them."""

from collections.abc import AsyncGenerator, Callable

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate

BASE = {"put": 17, "put_writes": 10, "get_tuple": 10, "list": 16, "delete_thread": 5}
"""Tests of each capability (langgraph-checkpoint-conformance 0.0.2): 58 of 58."""


async def assert_conforms(fresh_saver: Callable[[], AsyncGenerator[BaseCheckpointSaver[str]]]) -> None:
    """Run the suite on savers from `fresh_saver`, an asynchronous generator that yields one and cleans up after it."""
    registered = checkpointer_test(name="AgentVisorCheckpointer")(fresh_saver)
    report = await validate(registered, capabilities=set(BASE))
    results = {name: report.results[name] for name in BASE}
    # A capability that is not detected counts as skipped, and the report would say FULL all the same.
    assert {name: result.detected for name, result in results.items()} == dict.fromkeys(BASE, True)
    assert {name: result.failures for name, result in results.items() if result.failures} == {}
    assert {name: result.tests_passed for name, result in results.items()} == BASE
