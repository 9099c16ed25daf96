"""LangGraph's own conformance suite, for any way of getting a saver: all capabilities, every test of them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from uuid import uuid4

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from tests import langgraph_delta_history

BASE = {"put": 17, "put_writes": 10, "get_tuple": 10, "list": 16, "delete_thread": 5}
EXTENDED = {"delete_for_runs": 7, "copy_thread": 8, "prune": 8}
CAPABILITIES = BASE | EXTENDED
"""Tests of each capability (langgraph-checkpoint-conformance 0.0.2): 81 of 81."""


async def assert_conforms(fresh_saver: Callable[[], AsyncGenerator[BaseCheckpointSaver[str]]]) -> None:
    """Run the suite on savers from `fresh_saver`, an asynchronous generator that yields one and cleans up after it."""
    registered = checkpointer_test(name="AgentVisorCheckpointer")(fresh_saver)
    report = await validate(registered)
    results = report.results
    # A capability that is not detected counts as skipped, and the report would say FULL all the same.
    assert {name: result.detected for name, result in results.items()} == dict.fromkeys(CAPABILITIES, True)
    failures = {name: result.failures for name, result in results.items() if result.failures}
    assert failures == {}, failures
    assert {name: result.tests_passed for name, result in results.items()} == CAPABILITIES
    assert report.passed_all()


async def assert_delta_history(fresh_saver: Callable[[], AsyncGenerator[BaseCheckpointSaver[str]]]) -> None:
    """The ninth capability, which the suite on PyPI does not test yet, and that it is ours and not the default."""
    for test in langgraph_delta_history.ALL:
        async with aclosing(fresh_saver()) as savers:
            async for saver in savers:
                for name in ("get_delta_channel_history", "aget_delta_channel_history"):
                    assert getattr(type(saver), name) is not getattr(BaseCheckpointSaver, name)
                await test(saver, str(uuid4()))
