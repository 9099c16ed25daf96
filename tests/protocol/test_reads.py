"""Answers to readers stay under Temporal's limit, whatever a thread holds, and their pages are the whole."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.build import checkpoint, spec, thread, write, writes

from agentvisor.core.applying import apply
from agentvisor.core.attempts import Close
from agentvisor.core.runs import Ending, RunStatus
from agentvisor.core.thread import Thread
from agentvisor.protocol import reads
from agentvisor.protocol.threads import spec_from_message, thread_from_message
from agentvisor.protocol.v1 import run_pb2, thread_pb2

LIMIT = 2_000_000


def pages(one: Thread, **asked: object) -> list[thread_pb2.ReadThreadReply]:
    found: list[thread_pb2.ReadThreadReply] = []
    page = thread_pb2.ReadThread(**asked)  # type: ignore[arg-type]
    while not found or found[-1].cursor:
        page.cursor = found[-1].cursor if found else 0
        found.append(reads.read_thread(one, page))
        assert found[-1].ByteSize() < LIMIT
        assert len(found) < 100
    return found


@given(st.lists(st.tuples(st.integers(0, 500_000), st.integers(0, 1_200_000)), max_size=8))
def test_all_pages_together_hold_every_record_once_and_each_is_under_the_limit(sizes: list[tuple[int, int]]) -> None:
    one = thread()
    for number, (record, pending) in enumerate(sizes):
        apply(one.store, checkpoint(number, record=b"r" * record))
        apply(one.store, writes(number, write(0, "w" * pending)))
    found = pages(one)
    ids = [record.checkpoint.checkpoint_id for page in found for record in page.thread.store.checkpoints]
    assert ids == [f"{number:04}" for number in reversed(range(len(sizes)))]
    assert sum(len(page.thread.store.orphans) for page in found) == len(sizes)


def test_a_large_input_leaves_its_page_to_itself() -> None:
    one = thread()
    run = one.accept_run(spec(body=b"i" * 1_400_000), 1)
    for number in range(4):
        apply(one.store, checkpoint(number, record=b"r" * 400_000))
    first, *others = pages(one, whole_run_id=run.run_id)
    assert first.thread.runs[0].spec.input == b"i" * 1_400_000
    assert sum(len(page.thread.store.checkpoints) for page in others) == 4
    assert all(not page.thread.runs for page in others)


def test_an_output_is_read_and_a_large_input_beside_it_left_out() -> None:
    one = thread()
    run = one.accept_run(spec(body=b"i" * 1_400_000), 1)
    one.begin_attempt(run, 2)
    one.close_attempt(Close(Ending.COMPLETED, output=b"o" * 900_000), 3)
    (page,) = pages(one, whole_run_id=run.run_id, without_checkpoints=True)
    found = thread_from_message(page.thread).runs[run.run_id]
    assert found.output == b"o" * 900_000
    assert found.status is RunStatus.SUCCESS


@pytest.mark.parametrize("asked", [{"whole_run_id": "r1"}, {"runs": thread_pb2.RUNS_ASKED_WHOLE}])
def test_a_reader_who_joins_them_has_both_of_a_large_input_and_a_large_output(asked: dict[str, Any]) -> None:
    one = thread()
    for run_id in ("r1", "r2"):
        run = one.accept_run(spec(run_id, body=b"i" * 1_400_000), 1)
        one.begin_attempt(run, 2)
        one.close_attempt(Close(Ending.COMPLETED, output=b"o" * 900_000), 3)
    found = pages(one, without_checkpoints=True, inputs_apart=True, **asked)
    assert all(page.ByteSize() < 2_000_000 for page in found)
    runs = reads.join_inputs(run for page in found for run in page.thread.runs)
    assert [run.spec.run_id for run in runs] == ["r1", "r2"]
    sizes = {run.spec.run_id: (len(run.spec.input), len(run.output)) for run in runs}
    assert sizes == {"r1": (1_400_000, 900_000), "r2": (0, 0) if "whole_run_id" in asked else (1_400_000, 900_000)}


def test_of_very_many_runs_the_newest_and_those_that_wait_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "RUNS_BYTES", 30_000)
    one = thread()
    waiting = one.accept_run(spec("waits"), 1)
    for number in range(1_000):
        run = one.accept_run(spec(f"r{number}", body=b"x" * 1_000), 1)
        one.request_cancel(run.run_id, 2)
    (page,) = pages(one, whole_run_id="-")
    ids = [run.spec.run_id for run in page.thread.runs]
    assert ids[0] == waiting.run_id
    assert ids[-1] == "r999"
    assert 100 < len(ids) < 1_000
    assert all(not run.spec.input for run in page.thread.runs)


def test_a_large_configuration_is_told_only_where_its_run_is_asked_for() -> None:
    one = thread()
    message = run_pb2.RunSpec.FromString(spec().body)
    message.config = b"c" * 100_000
    one.accept_run(spec_from_message(message), 1)
    (page,) = pages(one, whole_run_id="-")
    assert not page.thread.runs[0].spec.config
    (page,) = pages(one, whole_run_id="r1")
    assert len(page.thread.runs[0].spec.config) == 100_000


@pytest.mark.thorough
def test_where_every_run_is_asked_for_the_pages_together_hold_all_of_them_in_order() -> None:
    one = thread()
    one.accept_run(spec("waits"), 1)
    for number in range(1_500):
        run = one.accept_run(spec(f"r{number}", body=b"i" * 1_500), 1)
        one.request_cancel(run.run_id, 2)
    apply(one.store, checkpoint(1))
    found = pages(one, whole_run_id="-", runs=thread_pb2.RUNS_ASKED_WHOLE)
    assert len(found) > 1
    runs = [run for page in found for run in page.thread.runs]
    assert [run.spec.run_id for run in runs] == [*one.runs]
    assert {len(run.spec.input) for run in runs[1:]} == {1_500}
    assert sum(len(page.thread.store.checkpoints) for page in found) == 1
    bare = [run for page in pages(one, runs=thread_pb2.RUNS_ASKED_EVERY) for run in page.thread.runs]
    assert [run.spec.run_id for run in bare] == [*one.runs]
    assert not any(run.spec.input for run in bare)
