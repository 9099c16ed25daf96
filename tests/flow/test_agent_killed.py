"""An agent's process is killed by a signal: the run goes on by itself, and what was finished is not done again."""

import signal

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import SECONDS, VictimThread, is_one_line, kill, warm_by_default
from tests.support.waiting_sync import until

pytestmark = pytest.mark.flow


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV], ids=["SIGKILL", "SIGSEGV"])
def test_a_finished_task_is_not_run_again_after_its_sibling_was_killed(
    victims: Project, number: signal.Signals
) -> None:
    thread = VictimThread(victims, victims.hosts[0])
    run = thread.graph("slow_tools", {})
    pid = thread.until_it("began slow")
    thread.until_it("operation put_writes", 3)  # of the start, and of the quick ones
    kill(pid, number)
    successor = thread.until_it("began slow", 2)
    thread.tell("gate")
    ended = thread.ended(run)
    assert ended["status"] == "success"
    assert [one["ending"] for one in ended["attempts"]] == ["agent_signal", "paused"]
    assert ended["attempts"][0]["reason"] == f"the agent was killed by signal {int(number)}"
    did = thread.did()
    assert (did["did one"], did["did two"], did["did slow"]) == (1, 1, 1)
    assert successor != pid
    assert [one["attempt"] for one in thread.effects() if one["what"] == "began slow"] == [1, 2]
    assert sorted(thread.values()["done"]) == ["one", "slow", "two"]
    assert thread.status() == "interrupted"


def test_a_graph_that_a_function_calls_with_its_run_goes_on_where_it_was(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    run = thread.call("tools:called", {"wanted": 3, "gates": [2]})
    kill(thread.until_it("began 2"))
    thread.until_it("began 2", 2)
    thread.tell("gate 2")
    assert thread.ended(run)["status"] == "success"
    assert thread.client.runs.join(thread.id, run)["done"] == [1, 2, 3]  # type: ignore[index]
    assert (thread.did()["began 1"], thread.did()["began 3"]) == (1, 1)


@warm_by_default
def test_a_run_survives_as_many_kills_as_the_budget_allows(victims: Project) -> None:
    thread = VictimThread(victims, victims.hosts[0])
    run = thread.graph("slow_tools", {})
    for times in (1, 2, 3):
        kill(thread.until_it("began slow", times))
    thread.until_it("began slow", 4)
    thread.tell("gate")
    assert thread.ended(run)["status"] == "success"
    assert len(thread.reasons(run)) == 4
    assert thread.did()["did slow"] == 1


def test_a_live_run_that_has_stored_nothing_says_where_it_runs_and_since_when(victims: Project) -> None:
    thread = VictimThread(victims, victims.hosts[0])
    run = thread.call("plain:sleeps", 600)
    until(lambda: thread.run(run)["status"] == "running" and thread.run(run)["attempts"][0]["host_id"], seconds=SECONDS)
    [attempt] = thread.run(run)["attempts"]
    assert attempt["started_at"] >= attempt["scheduled_at"]
    assert (attempt["ended_at"], attempt["ending"]) == (None, None)
    [listed] = thread.client.runs.list(thread.id)
    assert listed["attempts"] == [attempt]  # type: ignore[typeddict-item]
    thread.client.runs.cancel(thread.id, run)
    assert thread.ended(run)["status"] == "interrupted"


@warm_by_default
def test_a_write_that_comes_before_its_checkpoint_is_not_lost(victims: Project) -> None:
    thread = VictimThread(victims, victims.hosts[0])
    # With "async", LangGraph does not wait for a checkpoint before it runs the tasks that follow.
    run = thread.graph("early_writes", {}, durability="async")
    pid = thread.until_it("began slow")
    thread.until_it("wrote before its checkpoint", 2)
    thread.until_it("stored step 0")
    thread.until_it("operation put_writes", 3)
    kill(pid)
    thread.until_it("began slow", 2)
    thread.tell("gate")
    assert thread.ended(run)["status"] == "success"
    did = thread.did()
    assert (did["did one"], did["did two"], did["did slow"]) == (1, 1, 1)
    assert is_one_line(thread.history())


@warm_by_default
def test_what_was_streamed_says_which_attempt_it_is_from(victims: Project) -> None:
    thread = VictimThread(victims, victims.hosts[0])
    run = thread.graph("slow_tools", {}, stream_mode=["updates"])
    kill(thread.until_it("began slow"))
    thread.until_it("began slow", 2)
    thread.tell("gate")
    parts = list(thread.client.runs.join_stream(thread.id, run))
    assert [one.data["attempt"] for one in parts if one.event == "metadata"] == [1, 2]
