"""Two tools run side by side, one has finished: the next run's model sees a valid history with its answer."""

import pytest
from tests.flow.conftest import AGENTS
from tests.support.waiting_sync import until

from agentvisor.testing import kill
from agentvisor.testing.host import Host
from agentvisor.testing.thread import Run, Thread

pytestmark = [pytest.mark.flow, pytest.mark.timeout(240)]

AGENT_NAMES = ("middleware", "hook")


@pytest.fixture(scope="session")
def agentvisor_project(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    environment = {"EFFECTS": str(tmp_path_factory.mktemp("repair") / "effects")}
    return {
        name: {
            "entrypoint": f"{AGENTS / 'parallel_tools.py'}:{name}",
            "framework": "langgraph",
            "env": environment,
            "python_path": [str(AGENTS.parent)],
        }
        for name in (*AGENT_NAMES, "unrepaired")
    }


@pytest.fixture(scope="session")
def agentvisor_settings() -> dict[str, object]:
    # A crash that is restarted runs the tool again, and leaves nothing to repair.
    return {"temporal.run_restart.max_attempts": 0}


def said(text: str) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}]}


def in_the_middle(thread: Thread, agent: str) -> Run:
    """A run in which one of two tools has finished durably."""
    run = thread.start(agent, said("Do both."))
    until(lambda: any(task.get("result") for task in thread.state()["tasks"] if task["name"] == "tools"))
    return run


def shown(thread: Thread) -> list[str]:
    return [
        f"tool {one['name']} {one['status']}" if one["type"] == "tool" else str(one["type"])
        for one in thread.values["messages"]
    ]


REPAIRED = ["human", "ai", "tool quick success", "tool stuck error", "human", "ai"]


@pytest.mark.parametrize("agent", AGENT_NAMES)
def test_after_a_cancelled_run_the_model_sees_the_finished_answer_and_that_the_other_is_unknown(
    agentvisor_host: Host, agent: str
) -> None:
    thread = agentvisor_host.thread()
    assert in_the_middle(thread, agent).cancel().status == "interrupted"
    run = thread.run(agent, said("What now?"))
    assert run.status == "success", run.error
    assert shown(thread) == REPAIRED
    assert thread.values["messages"][2]["content"] == "quick is done"
    assert "may or may not have taken effect" in thread.values["messages"][3]["content"]


@pytest.mark.parametrize("agent", AGENT_NAMES)
def test_after_a_crash_that_is_not_restarted_it_is_the_same(agentvisor_host: Host, agent: str) -> None:
    like = agentvisor_host.thread()
    cancelled = in_the_middle(like, agent)
    writes = sum(one.when == "after" and one.name == "put_writes" for one in like.operations)
    cancelled.cancel()

    thread = agentvisor_host.thread()
    thread.inject(kill(at=f"after:put_writes:{writes}"))
    crashed = thread.run(agent, said("Do both."))
    assert (crashed.status, crashed.endings) == ("error", ["agent_signal"])
    run = thread.run(agent, said("What now?"))
    assert run.status == "success", run.error
    assert shown(thread) == REPAIRED
    assert thread.values["messages"][2]["content"] == "quick is done"


def test_without_repair_the_model_refuses(agentvisor_host: Host) -> None:
    thread = agentvisor_host.thread()
    in_the_middle(thread, "unrepaired").cancel()
    run = thread.run("unrepaired", said("What now?"))
    assert run.status == "error"
    assert run.error["error"] == "InvalidHistory"
