"""What can be asked for is written in one short line, and what cannot happen is refused when it is written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentvisor.protocol.v1.store_pb2 import StoreRequest
from agentvisor.testing import Fault, delay, kill, points, stop
from agentvisor.testing.chance import Chance
from agentvisor.testing.faults import ANY, JOURNALLED, LIFE, OPERATIONS, READS, Point

NOT_AN_AGENTS = {"delete_thread", "copy_thread", "delete_for_runs", "prune"}
"""Requests about whole threads, which come from outside of runs."""


def test_every_operation_of_an_agent_has_its_name() -> None:
    asked = {field.name for field in StoreRequest.DESCRIPTOR.oneofs_by_name["kind"].fields}
    assert asked - NOT_AN_AGENTS <= {*JOURNALLED, *READS}
    assert set(OPERATIONS) == {ANY, *JOURNALLED, *READS, *LIFE}


@given(st.sampled_from(["before", "after"]), st.sampled_from(OPERATIONS), st.integers(1, 999))
def test_a_point_reads_as_it_is_written(when: str, operation: str, number: int) -> None:
    assert str(Point.parse(f"{when}:{operation}:{number}")) == f"{when}:{operation}:{number}"


@pytest.mark.parametrize(
    "text, says",
    [
        ("put:1", "begins with before: or after:"),
        ("during:put:1", "begins with before: or after:"),
        ("after:save_all:1", "there is no operation 'save_all'; there are any, put"),
        ("after:put", "'' must be 1 for the first"),
        ("after:put:0", "'0' must be 1 for the first"),
        ("after:put:-1", "'-1' must be 1 for the first"),
        ("after:put:²", "must be 1 for the first"),
    ],
)
def test_what_is_no_point_is_refused_with_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        kill(at=text)


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda: kill(at="after:put:1", target="world"), "no target 'world'"),  # type: ignore[arg-type]
        (lambda: stop(at="after:put:1", seconds=0), "how many seconds"),
        (lambda: delay(at="after:put:1", seconds=-1), "how many seconds"),
        (lambda: kill(at="before:start:1"), "there is no agent yet"),
        (lambda: kill(at="before:outcome:1"), "waits for nobody"),
    ],
)
def test_what_cannot_happen_is_refused(make: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    "fault, text",
    [
        (kill(at="after:put:2"), 'kill(at="after:put:2", target="agent")'),
        (stop(at="before:any:1", target="host", seconds=1.5), 'stop(at="before:any:1", target="host", seconds=1.5)'),
        (delay(at="before:put:1", seconds=2), 'delay(at="before:put:1", seconds=2)'),
    ],
)
def test_a_fault_is_shown_as_it_is_written(fault: Fault, text: str) -> None:
    assert str(fault) == text
    assert eval(text, {"kill": kill, "stop": stop, "delay": delay}) == fault
    assert Fault.from_json(fault.to_json()) == fault


def test_all_points_of_a_run_of_so_many_operations() -> None:
    assert points(2) == ["before:any:1", "after:any:1", "before:any:2", "after:any:2"]
    assert points(1, "put") == ["before:put:1", "after:put:1"]


@given(seed=st.integers(), count=st.integers(1, 8), stops=st.booleans())
def test_a_drawn_plan_can_happen_and_strikes_no_point_twice(seed: int, count: int, *, stops: bool) -> None:
    chance = Chance(seed, "test")
    drawn = chance.faults(count, operations=OPERATIONS, targets=("agent", "guest", "host"), within=2, stops=stops)
    assert len({fault.at for fault in drawn}) == count
    assert (
        list(drawn)
        == chance.drawn
        == list(
            Chance(seed, "test").faults(
                count, operations=OPERATIONS, targets=("agent", "guest", "host"), within=2, stops=stops
            )
        )
    )
