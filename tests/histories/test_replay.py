"""B16: every history that was ever recorded replays with the workflow's present code."""

from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from tests.histories.scenarios import SCENARIOS
from tests.histories.shelf_scenarios import SHELF_SCENARIOS
from tests.histories.upkeep_scenarios import CRON_SCENARIOS

from agentvisor.core import shelf as core_shelf
from agentvisor.core import thread as core_thread
from agentvisor.host.worker import workflow_runner
from agentvisor.host.workflow.cron import CronWorkflow
from agentvisor.host.workflow.shelf import ShelfWorkflow
from agentvisor.host.workflow.thread import ThreadWorkflow

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))


async def replay(path: Path) -> None:
    history = WorkflowHistory.from_json(path.stem, path.read_text())
    known = [ThreadWorkflow, ShelfWorkflow, CronWorkflow]
    await Replayer(workflows=known, workflow_runner=workflow_runner()).replay_workflow(history)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
async def test_a_recorded_history_replays(path: Path) -> None:
    await replay(path)


def test_every_scenario_is_recorded() -> None:
    assert {path.name.partition(".")[0] for path in RECORDED} == {*SCENARIOS, *SHELF_SCENARIOS, *CRON_SCENARIOS}


async def test_a_change_that_would_break_living_threads_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_thread.Thread, "next_run", lambda _self, _now: None)  # no activity where there was one
    (path,) = [path for path in RECORDED if path.name.startswith("run_that_completes.1.1")]
    with pytest.raises(Exception, match=r"(?i)nondeterminism"):
        await replay(path)


async def test_a_change_that_would_break_living_shelves_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_shelf.Shelf, "next_expiry_ms", lambda _self: None)  # no timer where there was one
    (path,) = [path for path in RECORDED if path.name.startswith("shelf_that_ends.1.1")]
    with pytest.raises(Exception, match=r"(?i)nondeterminism"):
        await replay(path)
