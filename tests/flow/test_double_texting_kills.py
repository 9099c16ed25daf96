"""Double texting through kills: either both runs are as they were, or the old one is gone and the new one runs."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph_sdk.errors import APIStatusError, NotFoundError
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread, is_one_line, victim_host
from tests.flow.test_everything_restarted import restart_everything
from tests.support.host_process import HostProcess
from tests.support.temporal import TemporalProcess

pytestmark = pytest.mark.flow

LONG = {"wanted": 400, "pause": 0.02}
"""A run that is not done before it is ended."""
FEW = {"wanted": 3, "pause": 0}


def begun(project: Project, host: HostProcess) -> tuple[VictimThread, str, list[str], str]:
    """A thread with a run that has ended, its checkpoints, and one that is at work."""
    thread = VictimThread(project, host)
    first = thread.graph("steps", FEW)
    thread.ended(first)
    stood = checkpoints(thread)
    old = thread.graph("steps", LONG)
    thread.until_it("stored step 6")
    return thread, first, stood, old


def checkpoints(thread: VictimThread) -> list[str]:
    return [one["checkpoint"]["checkpoint_id"] for one in thread.history()]


def runs(thread: VictimThread) -> dict[str, str]:
    return {one["run_id"]: one["status"] for one in thread.client.runs.list(thread.id)}


def test_what_was_accepted_is_carried_out_after_everything_was_killed(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    host = victim_host(own_project)
    undone, first, stood, old = begun(own_project, host)
    ended, first_too, stood_too, old_too = begun(own_project, host)
    acknowledged = ended.stored()
    waits = VictimThread(own_project, host)
    later = waits.graph("steps", FEW, after_seconds=4)
    new = undone.graph("steps", {"wanted": 5, "pause": 0}, multitask_strategy="rollback")
    new_too = ended.graph("steps", FEW, multitask_strategy="interrupt")
    restart_everything(undone, temporal_process)
    ended.on(undone.host)
    waits.on(undone.host)

    assert undone.ended(new)["status"] == "success"
    assert runs(undone) == {new: "success", first: "success"}
    with pytest.raises(NotFoundError):
        undone.run(old)
    # The new run's first checkpoint stands on the one that the old run had stood on.
    assert checkpoints(undone)[-len(stood) :] == stood
    assert is_one_line(undone.history())
    assert undone.values()["done"] == [1, 2, 3, 4, 5]
    assert undone.status() == "idle"

    assert ended.ended(new_too)["status"] == "success"
    assert runs(ended) == {new_too: "success", old_too: "interrupted", first_too: "success"}
    assert acknowledged <= set(checkpoints(ended))
    assert checkpoints(ended)[-len(stood_too) :] == stood_too

    assert len(waits.ended(later)["attempts"]) == 1
    assert (waits.did()["did step 1"], waits.values()["done"]) == (1, [1, 2, 3])


def test_a_rollback_that_is_asked_for_during_an_outage_is_refused_or_done(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    thread, first, _, old = begun(own_project, victim_host(own_project))
    temporal_process.kill()
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(thread.graph, "steps", FEW, multitask_strategy="rollback")
        asyncio.run(temporal_process.start())
        refused = asked.exception()
    assert refused is None or (isinstance(refused, APIStatusError) and refused.status_code == 503)
    found = runs(thread)
    if refused is not None and old in found:  # nothing has happened to it
        assert found.keys() == {old, first}
        thread.client.runs.cancel(thread.id, old, wait=True)
    else:
        (new,) = found.keys() - {first}  # the old one is gone, also where the caller was not told of the acceptance
        assert thread.ended(new)["status"] == "success"
