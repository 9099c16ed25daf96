"""Delta channels on a real host that keeps three checkpoints: forks, updates, pruning, whole copies, rollbacks."""

import random
from collections.abc import Generator
from typing import Any
from uuid import uuid4

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from tests import test_langgraph_delta as graphs
from tests.flow.conftest import Project
from tests.support.host_process import HostProcess

from agentvisor.langgraph import AgentVisorCheckpointer

pytestmark = pytest.mark.flow


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[HostProcess]:
    project = Project(tmp_path_factory.mktemp("deltas"), temporal, "zygote", {})
    host = project.host({"AGENTVISOR_TEMPORAL_MAX_CHECKPOINT_HISTORY": str(graphs.KEEP)})
    try:
        yield host
    finally:
        host.stop()


def on(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


@pytest.mark.parametrize("seed", [0, 1])
def test_whatever_is_done_to_a_thread_it_is_as_with_langgraphs_own_saver(
    seed: int, host: HostProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, thread = random.Random(seed), f"deltas-{uuid4()}"
    model = graphs.builder().compile(checkpointer=InMemorySaver())
    saver = AgentVisorCheckpointer(endpoint=host.url)
    ours = graphs.builder().compile(checkpointer=saver)
    for step in range(15):
        act = chance.choice(["invoke", "invoke", "update", "fork", "replay"])
        at = chance.randrange(graphs.KEEP)
        monkeypatch.setattr(graphs, "CONFIG", on("model"))
        theirs = graphs.move(model, act, at, step, "sync")
        monkeypatch.setattr(graphs, "CONFIG", on(thread))
        assert graphs.move(ours, act, at, step, "sync") == theirs, (step, act, at)
        if step % 5 == 4:
            saver.prune([thread])
            assert len(list(saver.list(on(thread)))) == 1
            copy = f"{thread}-{step}"
            saver.copy_thread(thread, copy)
            saver.delete_thread(thread)
            # The model's thread has the rest of its history still: both go on from the latest, and build up a new past.
            thread = copy
            for graph, name in ((model, "model"), (ours, thread)):
                for turn in range(graphs.KEEP):
                    graph.update_state(on(name), {"items": [f"past {turn}"]}, as_node="left")
        assert ours.get_state(on(thread)).values == model.get_state(on("model")).values, (step, act, at)


def test_a_rollback_leaves_the_values_from_before_the_run(host: HostProcess) -> None:
    thread, first, second = f"rollback-{uuid4()}", str(uuid4()), str(uuid4())
    saver = AgentVisorCheckpointer(endpoint=host.url)
    graph = graphs.builder().compile(checkpointer=saver)
    before = graph.invoke({"items": ["kept"]}, on(thread) | {"metadata": {"run_id": first}}, durability="exit")
    graph.invoke({"items": ["gone"]}, on(thread) | {"metadata": {"run_id": second}}, durability="exit")
    saver.delete_for_runs([second])
    assert graph.get_state(on(thread)).values == before
    after = graph.invoke({"items": ["after"]}, on(thread))
    assert [item for item in after["items"] if " " not in item] == ["kept", "after"]
