"""A call that has ended beside others of one answer is not made again, whatever became of the others."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from google.adk.agents import SequentialAgent
from google.adk.tools.tool_context import ToolContext
from tests._adk.thread_state_double import Died
from tests.guest.runners.adk_agents import DID, agent, pay
from tests.guest.runners.adk_running import Thread

from agentvisor.client.conversation import Paused
from agentvisor.testing import call

BOTH = [call("pay", note="1"), call("late", note="2")], [call("late", note="2"), call("pay", note="1")]


@pytest.fixture(autouse=True)
def forget() -> None:
    DID.clear()


def breaks(how: type[BaseException]) -> Callable[..., str]:
    """A tool that ends so the first time, and sees what the other has left in the session."""

    async def late(note: str, tool_context: ToolContext) -> str:
        """Come late."""
        DID.append(f"tried {note}")
        await asyncio.sleep(0)
        if DID.count(f"tried {note}") == 1:
            raise how("the first time")
        return f"late {note}, {tool_context.state.get('paid')}"

    return late


@pytest.mark.parametrize("calls", BOTH, ids=["ended first", "ended last"])
@pytest.mark.parametrize("how", [Died, Paused, LookupError])
def test_what_ended_beside_a_call_that_did_not_is_given_back(how: type[BaseException], calls: list[Any]) -> None:
    def made() -> Any:
        first = agent("a", [calls, "a done"], pay, breaks(how))
        return SequentialAgent(name="seq", sub_agents=[first, agent("b", ["b done"])])

    thread = Thread(made)
    if how is LookupError:
        with pytest.raises(LookupError, match="the first time"):
            thread.run("go")
        ended = thread.run()
    elif how is Paused:
        assert thread.run("go")[0] == "completed"  # this double of a thread has no questions of plain agents
        ended = thread.run()
    else:
        ended = thread.run("go")
    assert ended == ("completed", "b done")
    assert DID.count("paid 1") == 1
    assert DID.count("tried 2") == 2
    assert (DID.count("model: calls"), DID.count("model: a done")) == (1, 1)
    session = asyncio.run(thread.session())
    results = {
        one.name: one.response for event in session.events for one in event.get_function_responses()
    }  # fmt: skip
    assert results == {"pay": {"result": "receipt 1"}, "late": {"result": "late 2, ['1']"}}
    assert session.state == {"paid": ["1"], "user:payments": 1}
    kept = asyncio.run(thread.state.akeys("finished/", scope="adk"))
    assert kept == []


def test_a_call_that_raises_again_is_told_again_and_made_again() -> None:
    def late(note: str) -> str:
        """Come late."""
        DID.append(f"tried {note}")
        if DID.count(f"tried {note}") < 3:
            raise LookupError(f"time {DID.count(f'tried {note}')}")
        return "late"

    thread = Thread(lambda: agent("a", [BOTH[0], "a done"], pay, late))
    for time in (1, 2):
        with pytest.raises(LookupError, match=f"time {time}"):
            thread.run("go" if time == 1 else None)
    assert thread.run() == ("completed", "a done")
    assert (DID.count("paid 1"), DID.count("tried 2"), DID.count("model: a done")) == (1, 3, 1)


def test_new_input_leaves_a_call_that_raised_behind() -> None:
    thread = Thread(lambda: agent("a", [BOTH[0], "Yes?", "a done"], pay, breaks(LookupError)))
    with pytest.raises(LookupError):
        thread.run("go")
    assert thread.run("never mind") == ("completed", "Yes?")
    assert DID.count("tried 2") == 1
