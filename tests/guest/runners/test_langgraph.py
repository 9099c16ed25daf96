"""LangGraph agents in real guests: what they are, what they stream, how they end and go on."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.guest.hosting import AGENTS, Hosting, Kept, configured
from tests.host.guest_processes import until

from agentvisor.core.ids import ROOT, Namespace
from agentvisor.host.guests import Guests
from agentvisor.protocol.v1.run_pb2 import Ending

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.flow]

HELLO = json.dumps({"messages": [{"role": "user", "content": "hi"}], "steps": 0}).encode()
GRAPHS = [
    "graph", "builder", "factory", "async_factory", "managed_factory", "swallowing_factory", "with_other_saver",
    "without_saver", "no_graph", "child", "family", "mapped", "asks", "fails", "gated", "gated_inside", "parallel",
    "exits", "exits_async",
]  # fmt: skip


# An executed agent imports langgraph anew, which takes a second: so both are tested where it matters.
both_start_methods = pytest.mark.parametrize("host", ["zygote", "exec"], indirect=True)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Hosting]:
    folder = tmp_path_factory.mktemp("guests")
    # One guest for all of them: agents differ by name only where a guest is concerned.
    agents = {
        name: {
            "entrypoint": f"{AGENTS}/graphs.py:{name}",
            "framework": "langgraph" if "factory" in name or name == "no_graph" else None,
            "env": {"TEST_LOG": str(folder / name)},
        }
        for name in GRAPHS
    }
    async with Guests(configured(folder, agents, getattr(request, "param", "zygote"))) as guests:
        hosting = Hosting(guests)
        hosting.folder = folder
        yield hosting


@pytest.fixture
def thread(request: pytest.FixtureRequest) -> str:
    """A thread of the test's own."""
    return "".join(character if character.isalnum() else "-" for character in request.node.name)


def effects(host: Hosting, agent: str) -> list[str]:
    return (host.folder / agent).read_text().splitlines()


def streamed(kept: Kept) -> list[tuple[str, tuple[str, ...], Any]]:
    return [(mode, namespace, json.loads(data)) for mode, namespace, data in kept.streamed]


def steps_kept(kept: Kept) -> int:
    return len(kept.thread.store.checkpoints.get(ROOT, {}))


# --- what is a LangGraph agent ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "agent", ["graph", "builder", "factory", "async_factory", "managed_factory", "with_other_saver"]
)
async def test_everything_that_makes_a_graph_runs_and_is_kept(host: Hosting, agent: str, thread: str) -> None:
    end, kept = await host.run(agent, thread=thread, input=HELLO)
    assert end.ending == Ending.ENDING_COMPLETED
    assert steps_kept(kept) == 5
    assert [line for line in kept.errors if "InMemorySaver is replaced" in line] == kept.errors
    assert len(kept.errors) == (agent == "with_other_saver")


async def test_a_context_manager_is_left_when_the_run_ends(host: Hosting, thread: str) -> None:
    await host.run("managed_factory", thread=thread, input=HELLO)
    assert effects(host, "managed_factory")[-2:] == ["open", "close"]


async def test_an_error_that_the_graphs_context_manager_swallows_is_the_runs_all_the_same(
    host: Hosting, thread: str
) -> None:
    end, _ = await host.run("swallowing_factory", thread=thread, input=HELLO)
    failed, _ = await host.run("fails", thread=f"{thread}-itself", input=HELLO)
    assert (end.ending, end.message) == (failed.ending, failed.message)
    assert end.ending == Ending.ENDING_AGENT_ERROR


async def test_a_graph_that_wants_no_checkpointer_gets_none_and_gives_its_values_as_output(
    host: Hosting, thread: str
) -> None:
    end, kept = await host.run("without_saver", thread=thread, input=HELLO)
    assert end.ending == Ending.ENDING_COMPLETED
    assert json.loads(end.outcome.output)["steps"] == 3
    assert kept.requests == []


async def test_what_makes_no_graph_is_said(host: Hosting, thread: str) -> None:
    end, _ = await host.run("no_graph", thread=thread)
    assert (end.ending, end.message) == (
        Ending.ENDING_AGENT_ERROR,
        "the entrypoint gives a int, not a LangGraph graph",
    )


@both_start_methods
async def test_a_turn_goes_on_from_the_last_one(host: Hosting, thread: str) -> None:
    for index in range(2):
        _, kept = await host.run("graph", thread=thread, run=f"r{index}", input=HELLO, stream_modes=["values"])
    assert len(streamed(kept)[-1][2]["messages"]) == 8


# --- streams ---------------------------------------------------------------------------------------------------------


async def test_only_what_was_asked_for_is_streamed(host: Hosting, thread: str) -> None:
    _, kept = await host.run("graph", thread=thread, input=HELLO)
    assert kept.streamed == []
    _, kept = await host.run("graph", thread=thread, run="2", input=HELLO, stream_modes=["updates", "custom"])
    assert {mode for mode, _, _ in streamed(kept)} == {"updates"}


@both_start_methods
async def test_values_are_streamed_as_json_with_their_message_ids(host: Hosting, thread: str) -> None:
    _, kept = await host.run("graph", thread=thread, input=HELLO, stream_modes=["values"])
    values = [data for _, _, data in streamed(kept)]
    assert [value["steps"] for value in values] == [0, 1, 2, 3]
    message = values[-1]["messages"][0]
    assert (message["type"], message["content"]) == ("human", "hi")
    assert all(message["id"] for message in values[-1]["messages"])


@pytest.mark.parametrize("mode", ["messages", "messages-tuple"])
async def test_tokens_are_streamed_with_their_metadata(host: Hosting, thread: str, mode: str) -> None:
    _, kept = await host.run("child", thread=thread, input=HELLO, stream_modes=[mode, "custom"])
    tokens = [data for streamed_mode, _, data in streamed(kept) if streamed_mode == mode]
    assert "".join(chunk["content"] for chunk, _ in tokens) == "hello big world"
    assert tokens[0][0]["type"] == "AIMessageChunk"
    assert tokens[0][1]["langgraph_node"] == "talk"
    assert ("custom", (), {"progress": "talking"}) in streamed(kept)


async def test_a_subgraphs_events_are_streamed_where_they_are_asked_for(host: Hosting, thread: str) -> None:
    _, kept = await host.run("family", thread=thread, input=HELLO, stream_modes=["custom", "updates"])
    assert {namespace for _, namespace, _ in streamed(kept)} == {()}
    _, kept = await host.run(
        "family", thread=thread, run="2", input=HELLO, stream_modes=["custom"], stream_subgraphs=True
    )
    ((_, namespace, data),) = streamed(kept)
    assert (namespace[0].split(":")[0], data) == ("child", {"progress": "talking"})


async def test_an_unknown_stream_mode_is_named(host: Hosting, thread: str) -> None:
    end, _ = await host.run("graph", thread=thread, input=HELLO, stream_modes=["vales"])
    assert end.ending == Ending.ENDING_AGENT_ERROR
    assert "stream mode 'vales' is not known" in end.message


# --- projections -----------------------------------------------------------------------------------------------------


async def test_each_checkpoint_is_shown_with_what_comes_next(host: Hosting, thread: str) -> None:
    _, kept = await host.run("graph", thread=thread, input=HELLO)
    store = kept.thread.store
    shown = [store.projections[one.key] for one in store.newest_first(ROOT)]
    assert [list(one.next) for one in shown] == [[], ["step"], ["step"], ["step"], ["__start__"]]
    assert set(store.channels[ROOT]) == {"messages", "seen", "steps"}


async def test_sent_tasks_and_subgraphs_are_shown_as_what_they_are(host: Hosting, thread: str) -> None:
    _, kept = await host.run("mapped", thread=thread, input=HELLO)
    tasks = [task for projection in kept.thread.store.projections.values() for task in projection.tasks]
    paths = [json.loads(task.path) for task in tasks if task.name == "work"]
    assert paths == [["__pregel_push", index, False] for index in range(3)]
    _, kept = await host.run("family", thread=f"{thread}-2", input=HELLO)
    store = kept.thread.store
    (subgraph,) = [
        task.subgraph for projection in store.projections.values() for task in projection.tasks if task.subgraph
    ]
    assert set(store.checkpoints) == {ROOT, Namespace(subgraph)}
    inner = [list(store.projections[one.key].next) for one in store.newest_first(Namespace(subgraph))]
    assert inner == [[], ["talk"], ["__start__"]]
    assert set(store.channels[Namespace(subgraph)]) == {"messages", "seen", "steps"}


# --- pauses and errors -----------------------------------------------------------------------------------------------


@both_start_methods
async def test_an_interrupt_pauses_the_run_and_an_answer_resumes_it(host: Hosting, thread: str) -> None:
    end, kept = await host.run("asks", thread=thread, run="1", input=HELLO, stream_modes=["values"])
    assert end.ending == Ending.ENDING_PAUSED
    (question,) = streamed(kept)[-1][2]["__interrupt__"]
    assert question["value"] == {"question": "sure?"}
    host.guests.reload()
    answer = json.dumps({"resume": "yes"}).encode()
    end, kept = await host.run("asks", thread=thread, run="2", command=answer, stream_modes=["values"])
    assert end.ending == Ending.ENDING_COMPLETED
    assert streamed(kept)[-1][2]["seen"] == ["yes"]


@pytest.mark.parametrize("where", [{"interrupt_before": ["fail"]}, {"interrupt_after": ["*"]}])
async def test_a_breakpoint_pauses_the_run_and_no_input_resumes_it(
    host: Hosting, thread: str, where: dict[str, Any]
) -> None:
    end, kept = await host.run("fails", thread=thread, run="1", input=HELLO, **where)
    assert end.ending == Ending.ENDING_PAUSED
    assert list(kept.thread.store.projections[next(kept.thread.store.newest_first(ROOT)).key].next) == ["fail"]
    end, _ = await host.run("fails", thread=thread, run="2")
    assert (end.ending, end.message.splitlines()[0]) == (Ending.ENDING_AGENT_ERROR, "boom!")


@pytest.mark.parametrize(
    "agent, where",
    [("fails", {"interrupt_before": ["fail"]}), ("fails", {"interrupt_after": ["step"]}),
     ("fails", {"interrupt_after": ["*"]}), ("gated", {}), ("gated_inside", {})],
)  # fmt: skip
async def test_a_breakpoint_stops_the_next_attempt_too_where_one_has_died_there(
    host: Hosting, thread: str, agent: str, where: dict[str, Any]
) -> None:
    _, kept = await host.run(agent, thread=thread, run="1", input=HELLO, **where)
    steps = steps_kept(kept)
    # Its checkpoint was acknowledged, and nothing of what came after that.
    kept.thread.store.projections.clear()
    end, kept = await host.run(agent, thread=thread, run="1", attempt=2, input=HELLO, stream_modes=["updates"], **where)
    assert (end.ending, streamed(kept)) == (Ending.ENDING_PAUSED, [("updates", (), {"__interrupt__": []})])
    assert list(kept.thread.store.projections[next(kept.thread.store.newest_first(ROOT)).key].next) == [
        "inner" if agent == "gated_inside" else "fail"
    ]
    assert steps_kept(kept) == steps
    for attempt in (1, 2):
        end, _ = await host.run(agent, thread=thread, run="2", attempt=attempt, **where)
        assert end.message.splitlines()[0] == "boom!", "a run without input goes on, whichever attempt it is"


@both_start_methods
async def test_a_nodes_error_is_told_from_the_users_first_line_on(host: Hosting, thread: str) -> None:
    end, kept = await host.run("fails", thread=thread, input=HELLO)
    assert (end.ending, end.code, end.outcome.error_type) == (Ending.ENDING_AGENT_ERROR, 70, "ValueError")
    frames = [line for line in end.outcome.traceback.splitlines() if line.startswith("  File")]
    assert frames[0].endswith("in failing")
    assert f'"{AGENTS}/graphs.py"' in frames[0]
    assert steps_kept(kept) == 3


@both_start_methods
@pytest.mark.parametrize("agent", ["exits", "exits_async"])
async def test_a_node_that_calls_sys_exit_has_not_completed_its_graph(host: Hosting, agent: str, thread: str) -> None:
    end, _ = await host.run(agent, thread=thread, input=HELLO)
    assert (end.ending, end.outcome.error_type) == (Ending.ENDING_AGENT_ERROR, "SystemExit")
    assert end.message == "the agent called sys.exit() before it had returned"


async def test_a_graph_that_loops_for_ever_fails_at_its_limit(host: Hosting, thread: str) -> None:
    config = json.dumps({"recursion_limit": 2}).encode()
    end, _ = await host.run("graph", thread=thread, input=HELLO, config=config)
    assert (end.ending, end.outcome.error_type) == (Ending.ENDING_AGENT_ERROR, "GraphRecursionError")


# --- kills -----------------------------------------------------------------------------------------------------------


@both_start_methods
async def test_a_finished_task_is_not_run_again_after_the_agent_is_killed(host: Hosting, thread: str) -> None:
    log = host.folder / "parallel"
    for file in (log, Path(f"{log}.go")):
        file.unlink(missing_ok=True)
    running, kept = await host.start("parallel", thread=thread, input=HELLO)
    await kept.printed("slow began")
    # What finished tasks wrote is in the store before anything is killed.
    await until(lambda: sum(request.WhichOneof("kind") == "put_writes" for request in kept.requests) >= 4)
    os.kill(running.pid, signal.SIGKILL)
    end = await asyncio.wait_for(running.ended, 10)
    assert end.ending == Ending.ENDING_AGENT_SIGNAL
    Path(f"{log}.go").touch()
    end, kept = await host.run("parallel", thread=thread, attempt=2, input=HELLO, stream_modes=["values"])
    assert end.ending == Ending.ENDING_COMPLETED
    assert streamed(kept)[-1][2]["seen"] == ["before", "one", "slow", "two", "last"]
    assert len(streamed(kept)[-1][2]["messages"]) == 1
    assert sorted(effects(host, "parallel")) == [
        "before", "last", "one", "slow began", "slow began", "slow ended", "two",
    ]  # fmt: skip


@both_start_methods
async def test_a_cancel_does_not_wait_for_a_blocking_node(host: Hosting, thread: str) -> None:
    Path(f"{host.folder / 'parallel'}.go").unlink(missing_ok=True)
    running, kept = await host.start("parallel", thread=thread, input=HELLO)
    await kept.printed("slow began")
    running.cancel(grace_seconds=60)
    end = await asyncio.wait_for(running.ended, 5)
    assert end.ending == Ending.ENDING_CANCELLED
    assert end.outcome is not None
