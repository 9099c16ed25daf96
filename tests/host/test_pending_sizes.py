"""Sizes of pending writes are those of a count from scratch, and cost no more for many tasks than for few."""

import time
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from agentvisor.core.ids import ROOT, CheckpointId
from agentvisor.core.records import CheckpointKey, TaskWrites, Write
from agentvisor.core.store import Store
from agentvisor.host.pending_sizes import PendingSizes


def key(number: int) -> CheckpointKey:
    return CheckpointKey(ROOT, CheckpointId(f"{number:04}"))


def writes(number: int, task: str, *those: Write) -> TaskWrites:
    return TaskWrites(ROOT, CheckpointId(f"{number:04}"), task, "", those)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_they_are_what_counting_from_scratch_says(seed: int) -> None:
    draw, store = Random(seed), Store()
    sizes = PendingSizes(store)
    for _ in range(60):
        number, task = draw.randrange(4), draw.choice("abcd")
        own = writes(number, task, Write(draw.randrange(-4, 4), "c", "b", b"w" * draw.randrange(50), 0))
        there = [
            one for name, held in store.tasks.get(own.key, {}).items() if name != task for one in held.writes.values()
        ]
        assert sizes.beside(own.key, task) == (sum(one.stored_bytes for one in there), len(there))
        if draw.random() < 0.8:
            sizes.will_write(own.key, task)
            if draw.random() < 0.2:  # another asks before it is in the store
                sizes.beside(own.key, "z")
            store.put_writes(own)  # else it was refused


def test_a_wide_fan_out_costs_in_proportion_to_its_width() -> None:
    def seconds(width: int) -> float:
        store = Store()
        sizes, began = PendingSizes(store), time.process_time()
        for number in range(width):
            task = f"t{number}"
            sizes.beside(key(0), task)
            sizes.will_write(key(0), task)
            store.put_writes(writes(0, task, Write(0, "c", "b", b"w", 0)))
        return time.process_time() - began

    seconds(100)
    small, large = min(seconds(500) for _ in range(3)), min(seconds(5_000) for _ in range(3))
    assert large < 10 * small * 10  # counting anew for each would be a hundred times as much
