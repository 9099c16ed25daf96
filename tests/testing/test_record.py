"""A fault happens at its point, counted from where it was injected, once; whoever was killed meanwhile."""

from pathlib import Path

from agentvisor.testing import kill
from agentvisor.testing.faults import When
from agentvisor.testing.record import Armed, Operation, Record


def operation(when: When, name: str, attempt: int = 1) -> Operation:
    return Operation(when, name, "run", attempt, {"n": attempt})


def due(folder: Path, thread: str, *operations: Operation) -> list[list[Armed]]:
    """What is due at each, in a process that knows nothing of the others."""
    return [Record(folder, thread).note(one) for one in operations]


def test_the_nth_of_a_kind_counts_over_attempts_and_from_the_injection(tmp_path: Path) -> None:
    due(tmp_path, "t", operation("after", "put"), operation("before", "put"))
    record = Record(tmp_path, "t")
    record.arm(kill(at="after:put:2"), kill(at="before:any:1"))
    found = due(
        tmp_path,
        "t",
        operation("before", "put_writes"),
        operation("after", "put"),
        operation("after", "get"),
        operation("after", "put", attempt=2),
        operation("after", "put", attempt=2),
    )
    assert [[str(armed.fault.at) for armed in one] for one in found] == [["before:any:1"], [], [], ["after:put:2"], []]


def test_what_has_happened_does_not_happen_again(tmp_path: Path) -> None:
    record = Record(tmp_path, "t")
    fault = kill(at="after:put:1")
    record.arm(fault, fault)
    first, second = record.note(operation("after", "put"))
    record.fired(first)
    assert record.happened() == [fault]
    record.fired(second)
    assert record.note(operation("after", "put")) == []
    assert record.happened() == [fault, fault]


def test_threads_with_odd_names_have_records_of_their_own(tmp_path: Path) -> None:
    for thread in ("a/b", "a%2Fb", "..", "ä"):
        Record(tmp_path, thread).note(operation("after", "put"))
        assert Record(tmp_path, thread).operations() == [operation("after", "put")]
    assert {one.parent for one in tmp_path.rglob("*.record")} == {tmp_path}
