"""Double texting through kills: either both runs are as they were, or the old one is gone and the new one runs."""

import asyncio

import pytest
from langgraph_sdk.errors import APIStatusError, NotFoundError
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread, victim_host
from tests.flow.test_everything_restarted import restart_everything
from tests.support.temporal import TemporalProcess

pytestmark = pytest.mark.flow

STEPS = {"wanted": 400, "pause": 0.02}
"""A run that is not done before it is ended."""
FEW = {"wanted": 3, "pause": 0}


def begun(project: Project) -> tuple[VictimThread, str, list[str], str]:
    """A thread with a run that has ended, its checkpoints, and one that is at work."""
    thread = VictimThread(project, victim_host(project))
    first = thread.graph("steps", FEW)
    thread.ended(first)
    stood = checkpoints(thread)
    old = thread.graph("steps", STEPS)
    thread.until_it("stored step 6")
    return thread, first, stood, old


def checkpoints(thread: VictimThread) -> list[str]:
    return [one["checkpoint"]["checkpoint_id"] for one in thread.history()]


def runs(thread: VictimThread) -> dict[str, str]:
    return {one["run_id"]: one["status"] for one in thread.client.runs.list(thread.id)}


def test_an_accepted_rollback_is_carried_out_after_everything_was_killed(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    thread, first, stood, old = begun(own_project)
    new = thread.graph("steps", {"wanted": 5, "pause": 0}, multitask_strategy="rollback")
    restart_everything(thread, temporal_process)
    assert thread.ended(new)["status"] == "success"
    assert runs(thread) == {new: "success", first: "success"}
    with pytest.raises(NotFoundError):
        thread.run(old)
    # The new run's first checkpoint stands on the one that the old run had stood on.
    assert checkpoints(thread)[-len(stood) :] == stood
    assert thread.values()["done"] == [1, 2, 3, 4, 5]
    assert thread.status() == "idle"


def test_an_accepted_interrupt_is_carried_out_after_everything_was_killed(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    thread, first, stood, old = begun(own_project)
    acknowledged = thread.stored()
    new = thread.graph("steps", FEW, multitask_strategy="interrupt")
    restart_everything(thread, temporal_process)
    assert thread.ended(new)["status"] == "success"
    assert runs(thread) == {new: "success", old: "interrupted", first: "success"}
    assert acknowledged <= set(checkpoints(thread))
    assert checkpoints(thread)[-len(stood) :] == stood


def test_a_rollback_that_is_asked_for_during_an_outage_is_refused_or_done(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    thread, first, _, old = begun(own_project)
    temporal_process.kill()
    try:
        thread.graph("steps", FEW, multitask_strategy="rollback")
    except APIStatusError as error:
        assert error.status_code == 503
    finally:
        asyncio.run(temporal_process.start())
    found = runs(thread)
    if old in found:  # refused: nothing has happened to it
        assert found.keys() == {old, first}
        thread.client.runs.cancel(thread.id, old, wait=True)
    else:
        (new,) = found.keys() - {first}
        assert thread.ended(new)["status"] == "success"


def test_a_delayed_run_is_due_although_everything_was_killed(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    thread = VictimThread(own_project, victim_host(own_project))
    run = thread.graph("steps", FEW, after_seconds=4)
    restart_everything(thread, temporal_process)
    ended = thread.ended(run)
    assert ended["status"] == "success"
    assert (thread.did()["did step 1"], len(ended["attempts"])) == (1, 1)
    assert thread.values()["done"] == [1, 2, 3]
