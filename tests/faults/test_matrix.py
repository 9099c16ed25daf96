"""Hop by hop, fault by fault: nothing acknowledged is lost, nothing is forked, a run ends once and repeats nothing."""

from collections.abc import AsyncGenerator
from itertools import product

import pytest
import pytest_asyncio
from tests.faults.fault_scene import FaultScene, HitRun, fault_scene
from tests.faults.matrix import MATRIX, Cell, Fault, Hop, NoSuchThing

CELLS = [
    pytest.param(cell, id=f"{hop.name.lower()}-{fault.name.lower()}")
    for (hop, fault), cell in MATRIX.items()
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
    assert tuple(endings) in cell.endings
    assert await run.runs() == cell.runs
