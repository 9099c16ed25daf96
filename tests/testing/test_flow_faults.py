"""Faults happen where they were asked for, to whom, once; and what was acknowledged before them is kept."""

from collections import Counter
from collections.abc import Callable

import pytest

from agentvisor.testing import Fault, delay, kill, stop
from agentvisor.testing.host import Host

pytestmark = [pytest.mark.flow, pytest.mark.timeout(180)]

Did = Callable[[str], Counter[str]]


def slow(fault: Fault, endings: list[str]) -> object:
    return pytest.param(fault, endings, marks=pytest.mark.slow)


GIVEN = {"messages": [{"role": "user", "content": "Refund order 7."}]}


@pytest.mark.parametrize(
    "fault, endings",
    [
        (kill(at="before:put_writes:2"), ["agent_signal", "completed"]),
        (kill(at="after:put_writes:2"), ["agent_signal", "completed"]),
        slow(kill(at="after:put:3"), ["agent_signal", "completed"]),
        (kill(at="after:start:1"), ["agent_signal", "completed"]),
        slow(kill(at="before:outcome:1", target="guest"), ["guest_gone", "completed"]),
        (kill(at="after:any:6", target="guest"), ["guest_gone", "completed"]),
        slow(kill(at="before:start:1", target="guest"), ["guest_gone", "completed"]),
        (kill(at="after:any:6", target="host"), ["host_gone", "completed"]),
        (kill(at="after:put:3", target="temporal"), None),
        (stop(at="after:put:3", seconds=0.5), ["completed"]),
        slow(stop(at="after:put:3", target="guest", seconds=8), ["guest_unresponsive", "completed"]),
        slow(stop(at="after:put:3", target="host", seconds=4), ["host_gone", "completed"]),
        slow(stop(at="before:put:3", target="temporal", seconds=1), ["completed"]),
        (delay(at="before:put:2", seconds=0.3), ["completed"]),
    ],
    ids=str,
)
def test_a_fault_happens_where_it_was_asked_for(
    agentvisor_host: Host, did: Did, fault: Fault, endings: list[str] | None
) -> None:
    thread = agentvisor_host.thread()
    thread.inject(fault)
    run = thread.run("refunds", GIVEN)
    assert run.status == "success", (run.error, thread.told())
    assert thread.happened == [fault]
    assert endings in (None, run.endings)
    assert thread.values["messages"][-1]["content"] == "Done."
    # Whether a tool that was under way had its effect, nobody knows: it is done again.
    assert set(did(thread.id)) == {"checked 7", "checked 8", "paid 7"}
