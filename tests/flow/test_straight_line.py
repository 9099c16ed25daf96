"""The straight line, in order: a run from HTTP to the agent's process, its checkpoints back to HTTP."""

from itertools import pairwise
from uuid import uuid4

import httpx
import pytest
from tests.flow.conftest import Project, client_of
from tests.support.waiting_sync import until

pytestmark = pytest.mark.flow


def test_a_run_leaves_a_checkpoint_for_every_super_step(line: Project) -> None:
    client = client_of(line.hosts[0])
    thread = client.threads.create()["thread_id"]
    values = client.runs.wait(thread, "five", input={"given": "x"})
    assert values == {
        "given": "x",
        **{f"out_{name}": f"{name} of x" for name in ("plan", "left", "middle", "right", "join")},
    }
    history = client.threads.get_history(thread, limit=100)
    assert [one["metadata"]["step"] for one in history] == [3, 2, 1, 0, -1]
    assert [one["next"] for one in history] == [[], ["join"], ["left", "middle", "right"], ["plan"], ["__start__"]]
    for newer, older in pairwise(history):
        assert newer["parent_checkpoint"]["checkpoint_id"] == older["checkpoint"]["checkpoint_id"]
    assert client.threads.get(thread)["status"] == "idle"


def test_state_is_served_as_curl_would_ask_for_it(zygote_line: Project) -> None:
    host = zygote_line.hosts[0]
    client = client_of(host)
    client.threads.create(thread_id="curl.me:1")
    client.runs.wait("curl.me:1", "five", input={"given": "y"})
    state = httpx.get(f"{host.url}/threads/curl.me:1/state").json()
    history = httpx.get(f"{host.url}/threads/curl.me:1/history").json()
    assert state["values"]["out_join"] == "join of y"
    assert state["checkpoint"] == history[0]["checkpoint"]
    assert state["created_at"].startswith("20")
    assert state["metadata"]["source"] == "loop"


def test_each_tasks_writes_are_durable_as_it_finishes(line: Project) -> None:
    host = line.hosts[0]
    client = client_of(host)
    thread = client.threads.create()["thread_id"]
    run = client.runs.create(thread, "tools", input={})
    until(lambda: line.did()["began slow"] == 1)

    def finished() -> set[str]:
        tasks = client.threads.get_state(thread)["tasks"]
        return {task["name"] for task in tasks if task.get("result") is not None}

    until(lambda: finished() == {"one", "two"})
    assert client.runs.get(thread, run["run_id"])["status"] == "running"
    assert client.threads.get(thread)["status"] == "busy"
    line.gate.touch()
    client.runs.join(thread, run["run_id"])
    assert client.threads.get(thread)["status"] == "interrupted"


def test_a_plain_function_is_an_agent(line: Project) -> None:
    client = client_of(line.hosts[0])
    thread = client.threads.create()["thread_id"]
    output = client.runs.wait(thread, "echo", input={"n": [1, 2.0, None, "é"]})
    assert output["echo"] == {"n": [1, 2.0, None, "é"]}
    assert output["thread"] == thread


def test_a_generators_events_are_streamed(zygote_line: Project) -> None:
    client = client_of(zygote_line.hosts[0])
    thread = client.threads.create()["thread_id"]
    events = list(client.runs.stream(thread, "counts", input=3, stream_mode="custom"))
    assert events[0].event == "metadata"
    assert events[0].data["attempt"] == 1
    assert [one.data for one in events if one.event == "custom"] == [{"number": 0}, {"number": 1}, {"number": 2}]


def test_streams_of_all_four_modes(zygote_line: Project) -> None:
    client = client_of(zygote_line.hosts[0])
    thread = client.threads.create()["thread_id"]
    parts = list(client.runs.stream(thread, "five", input={"given": "z"}, stream_mode=["values", "updates"]))
    updates = [node for one in parts if one.event == "updates" for node in one.data]
    assert updates[0] == "plan"
    assert set(updates[1:4]) == {"left", "middle", "right"}
    assert updates[4] == "join"
    assert [one.data for one in parts if one.event == "values"][-1]["out_join"] == "join of z"


def test_what_an_agent_prints_is_logged_with_its_run(zygote_line: Project) -> None:
    host = zygote_line.hosts[0]
    client = client_of(host)
    thread = client.threads.create()["thread_id"]
    run = client.runs.create(thread, "talks", input=None)
    client.runs.join(thread, run["run_id"])
    lines = [line for line in host.log.read_text().splitlines() if "said on std" in line]
    assert len(lines) == 2
    assert all(thread in line and run["run_id"] in line and "attempt" in line for line in lines)


def test_runs_of_one_thread_follow_each_other(zygote_line: Project) -> None:
    client = client_of(zygote_line.hosts[0])
    thread = str(uuid4())
    first = client.runs.create(thread, "sleeps", input=0.3, if_not_exists="create")
    second = client.runs.create(thread, "echo", input=1)
    assert client.runs.join(thread, second["run_id"])["echo"] == 1
    assert client.runs.get(thread, first["run_id"])["status"] == "success"


def test_a_running_run_is_cancelled(line: Project) -> None:
    client = client_of(line.hosts[0])
    thread = client.threads.create()["thread_id"]
    run = client.runs.create(thread, "sleeps", input=600)
    until(lambda: line.did()["did sleeps"] == 1)
    client.runs.cancel(thread, run["run_id"], wait=True)
    assert client.runs.get(thread, run["run_id"])["status"] == "interrupted"
    # As LangGraph's server: nothing comes next that an empty input would go on with.
    assert client.threads.get(thread)["status"] == "idle"
    assert client.runs.wait(thread, "echo", input="after")["echo"] == "after"


def test_a_deleted_thread_is_gone_and_its_id_is_free(zygote_line: Project) -> None:
    host = zygote_line.hosts[0]
    client = client_of(host)
    client.threads.create(thread_id="short-lived")
    client.runs.wait("short-lived", "five", input={"given": "x"})
    client.threads.delete("short-lived")
    assert httpx.get(f"{host.url}/threads/short-lived").status_code == 404
    client.threads.create(thread_id="short-lived")
    assert client.threads.get_history("short-lived") == []
