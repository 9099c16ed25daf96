"""Namespaces: own heads and histories; those of tasks go with the root's checkpoint, others stay."""

import time

import pytest
from tests.core.test_shedding import checkpoint, regular, writes

from agentvisor.core.applying import apply
from agentvisor.core.ids import ROOT, Namespace
from agentvisor.core.records import Operation, Prune
from agentvisor.core.store import Store


def applied(store: Store, *operations: Operation) -> Store:
    for operation in operations:
        apply(store, operation)
    return store


def super_step(number: int, width: int) -> list[Operation]:
    """A root checkpoint with a fan-out under it; ids are in the order of time."""
    root = number * 1000
    found = list(checkpoint(root, root - 1000 if number else None))
    for branch in range(width):
        found += checkpoint(root + branch + 1, None, namespace=f"node:{number}.{branch}", root=root)
        found.append(writes(root + branch + 1, "t", regular(), namespace=f"node:{number}.{branch}"))
    return found


def test_a_fan_out_is_bounded_by_its_width_times_the_roots_history() -> None:
    store, most = Store(keep=3), 0
    for number in range(12):
        applied(store, *super_step(number, 20))
        most = max(most, len(store.checkpoints))
    assert most <= 1 + 3 * 20
    applied(store, *(one for number in range(12, 16) for one in super_step(number, 0)))
    assert list(store.checkpoints) == [ROOT]
    assert not store.tasks
    assert len(store.blobs) == 3
    assert not store.under
    assert not store.roots


def test_with_no_limit_nothing_is_reclaimed() -> None:
    for keep in (0, -5):
        store = Store(keep=keep)
        applied(store, *(one for number in range(12) for one in super_step(number, 5)))
        assert len(store.checkpoints) == 1 + 12 * 5


def test_a_namespace_without_a_task_id_is_never_stale_and_keeps_its_own_history() -> None:
    store = applied(Store(keep=2), *checkpoint(1, None, namespace="keeps", root=0))
    for number in range(1, 6):
        applied(store, *super_step(number, 1))
    assert list(store.checkpoints[Namespace("keeps")]) == ["00001"]
    applied(
        store, *(one for number in range(2, 9) for one in checkpoint(number, number - 1, namespace="keeps", root=0))
    )
    assert len(store.checkpoints[Namespace("keeps")]) == 2


def test_a_subgraph_under_one_that_keeps_its_state_goes_with_the_roots_checkpoint() -> None:
    store = applied(Store(keep=1), *super_step(0, 0), *checkpoint(1, None, namespace="keeps|inner:7", root=0))
    applied(store, *super_step(1, 0))
    assert list(store.checkpoints) == [ROOT]


def test_writes_that_come_late_for_a_namespace_that_is_gone_do_not_stay_for_ever() -> None:
    store = applied(Store(keep=1), *super_step(0, 1), *super_step(1, 0))
    applied(store, writes(1, "late", regular(), namespace="node:0.0"))
    assert store.orphans
    applied(store, *super_step(2, 0))
    assert not store.orphans
    assert not store.tasks


def test_prune_keeps_the_newest_of_every_namespace_those_of_older_super_steps_too() -> None:
    store = applied(Store(keep=10), *(one for number in range(4) for one in super_step(number, 2)))
    applied(store, Prune(keep_latest=True))
    assert len(store.checkpoints) == 1 + 4 * 2
    assert all(len(group) == 1 for group in store.checkpoints.values())


@pytest.mark.thorough
def test_reclaiming_a_wide_fan_out_takes_time_in_proportion_to_it() -> None:
    def seconds(width: int) -> float:
        store = applied(Store(keep=1), *super_step(0, width))
        began = time.process_time()
        applied(store, *super_step(1, 0))
        return time.process_time() - began

    seconds(100)
    small, large = min(seconds(1_000) for _ in range(3)), min(seconds(8_000) for _ in range(3))
    assert large < 8 * small * 4
