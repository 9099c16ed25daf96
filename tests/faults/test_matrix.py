"""Hop by hop, fault by fault: nothing acknowledged is lost, nothing is forked, a run ends once and repeats nothing."""

from collections.abc import AsyncGenerator
from itertools import pairwise, product

import pytest
import pytest_asyncio
from tests.faults.fault_scene import FaultScene, HitRun, fault_scene
from tests.faults.matrix import MATRIX, Cell, Fault, Hop, NoSuchThing

CELLS = [
    # A run of CI has every second one, make torture has all.
    pytest.param(
        cell, id=f"{hop.name.lower()}-{fault.name.lower()}", marks=[pytest.mark.slow] * ((n + n // len(Fault)) % 2)
    )
    for n, ((hop, fault), cell) in enumerate(MATRIX.items())
    if isinstance(cell, Cell)
]


def test_the_matrix_is_total_and_what_is_missing_has_its_reason() -> None:
    assert set(MATRIX) == set(product(Hop, Fault))
    assert all(cell.why for cell in MATRIX.values() if isinstance(cell, NoSuchThing))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene() -> AsyncGenerator[FaultScene]:
    """Shared by all cells; what one has killed is there again for the next."""
    async with fault_scene() as scene:
        yield scene


def lost_once(endings: list[str]) -> tuple[str, ...]:
    """The endings, with a host that was lost several times over counted once.

    While a fault lasts, or the machine is busy, the attempt that follows misses its heartbeats too.
    """
    repeated = [first == second == "host_gone" for first, second in pairwise(endings)]
    return tuple(one for one, again in zip(endings, [False, *repeated], strict=True) if not again)


@pytest.mark.flow
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.asyncio(loop_scope="module")
async def test_the_four_truths_hold(scene: FaultScene, cell: Cell) -> None:
    await scene.all_there()
    run = HitRun(scene)
    try:
        await cell.make(run)
    finally:
        scene.mend()
    endings = await run.endings()
    assert not await run.violations()
    assert lost_once(endings) in cell.endings
    assert await run.runs() == cell.runs
