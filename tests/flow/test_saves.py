"""The checkpoint API and thread state inside runs: each run is a process of its own, what one keeps the next reads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import httpx
import pytest
from tests.flow.conftest import Project, called, client_of
from tests.flow.deaths import AT_A_TIME, VictimThread

from agentvisor import checkpoint, thread_state
from agentvisor.core.errors import Conflict, InvalidInput
from agentvisor.testing import kill, points

pytestmark = [pytest.mark.flow, pytest.mark.timeout(180)]


def test_what_is_saved_is_loaded_by_the_next_process(shared: Project) -> None:
    client = client_of(shared.hosts[0])
    thread, first = called(client, "saves:save", key="plan", state={"step": 1})
    _, second = called(client, "saves:save", thread, key="notes", state=["a"])
    assert first < second
    assert called(client, "saves:load", thread)[1] == ["a"]
    assert called(client, "saves:load", thread, id=first)[1] == {"step": 1}


def test_saves_are_loaded_and_listed_blocking_and_awaited(shared: Project) -> None:
    _, seen = called(client_of(shared.hosts[0]), "saves:every_way")
    assert seen == {
        "order": True,
        "latest": [{"step": 2}, ["a", None, 1.5, True]],
        "old": {"step": 1},
        "of key": {"step": 2},
        "plan": True,
        "all": ["notes", "plan", "plan"],
        "newest": True,
        "when": True,
    }


def test_thread_state_is_kept_and_changed_blocking_and_awaited(shared: Project) -> None:
    _, seen = called(client_of(shared.hosts[0]), "saves:state_every_way")
    assert seen == {
        "grows": True,
        "list": [1, 2, 3, {"n": 4}],
        "items": [[2, 3, {"n": 4}], [{"n": 4}], [], []],
        "get": [None, "default"],
        "update": [True, True, {"a": 1, "b": [2]}],
        "keys": [["k", "o"], ["k"], []],
        "delete": [True, False, ["k"]],
        "async": [{"a": 1, "b": 2}, ["x", "y"], ["y"], ["async", "log"], True, "gone"],
    }


def test_a_stale_writer_is_refused_and_changes_nothing(shared: Project) -> None:
    _, seen = called(client_of(shared.hosts[0]), "saves:stale", key="k")
    assert seen == [["Conflict"] * 4, "theirs"]


def test_a_list_of_many_items_is_read_whole_by_the_next_process(shared: Project) -> None:
    client = client_of(shared.hosts[0])
    thread, many = called(client, "saves:append_many", key="events", count=600)
    assert many == 600
    items = called(client, "saves:read_state", thread, key="events")[1]
    assert [one["number"] for one in items] == [*range(600)]
    thread, many = called(client, "saves:append_many", thread, key="events", count=10)
    assert many == 610


# --- what is refused -------------------------------------------------------------------------------------------------


def test_what_is_not_json_is_refused_by_its_path(shared: Project) -> None:
    _, seen = called(client_of(shared.hosts[0]), "saves:not_json")
    assert {tuple(one[:2]) for one in seen} == {("InvalidInput", "True")}
    says = ["state['rows'][1]['when'] is not JSON: object", "state['a'] is not JSON: set", "state is nan",
            "the key 3 is a int", "levels deep", "state is not JSON: bytes", "value['f'][0]", "item['x']",
            "changes['x']"]  # fmt: skip
    assert [part for part, one in zip(says, seen, strict=True) if part not in one[2]] == []


def test_a_name_that_is_none_and_another_thread_are_refused(shared: Project) -> None:
    _, seen = called(client_of(shared.hosts[0]), "saves:bad_names")
    *names, checkpoint, state = [one[0] for one in seen]
    assert set(names) == {"InvalidInput"}
    assert (checkpoint, state) == ("PermissionRefused", "PermissionRefused")


def test_a_langgraph_checkpoint_is_refused_with_a_value_error_that_says_what_to_use(shared: Project) -> None:
    client = client_of(shared.hosts[0])
    _, (latest, unknown) = called(client, "saves:only_a_graph")
    assert latest[:2] == ["InvalidInput", "True"]
    assert "LangGraph checkpoint" in latest[2]
    assert "AgentVisorCheckpointer" in latest[2]
    assert (unknown[0], "no save with the id" in unknown[2]) == ("NotFound", True)


def test_saves_and_a_graph_on_one_thread_do_not_see_each_other(shared: Project) -> None:
    client = client_of(shared.hosts[0])
    thread, seen = called(client, "saves:beside_a_graph")
    assert seen["before"] == []
    assert (seen["saved"], seen["counts"]) == ({"seen": 1}, [0, 1])
    assert seen["by id"][:2] == ["InvalidInput", "True"]
    assert (seen["namespaces"], seen["steps"]) == ([""], [4, 3, 2, 1, 0, -1])
    assert "agentvisor.checkpoint" in seen["namespace"]
    # Over HTTP the graph is what is shown.
    state = client.threads.get_state(thread)
    assert state["values"] == {"count": 2}
    assert {one["checkpoint"]["checkpoint_ns"] for one in client.threads.get_history(thread, limit=100)} == {""}


def test_a_thread_with_saves_alone_shows_the_latest_as_its_values(shared: Project) -> None:
    client = client_of(shared.hosts[0])
    thread, first = called(client, "saves:save", key="plan", state={"step": 1})
    second = called(client, "saves:save", thread, key="__plan__", state={"step": 2})[1]
    state = client.threads.get_state(thread)
    assert (state["values"], state["checkpoint"]["checkpoint_id"], state["next"]) == ({"step": 2}, second, [])
    assert client.threads.get(thread)["values"] == {"step": 2}
    history = client.threads.get_history(thread)
    assert [(one["values"], one["metadata"]["key"]) for one in history] == [
        ({"step": 2}, "__plan__"),
        ({"step": 1}, "plan"),
    ]
    assert client.threads.get_state(thread, checkpoint_id=first)["values"] == {"step": 1}
    assert client.threads.get_state(thread, checkpoint=history[1]["checkpoint"])["values"] == {"step": 1}
    assert [one["values"] for one in client.threads.get_history(thread, before=second)] == [{"step": 1}]
    assert client.threads.get(client.threads.copy(thread)["thread_id"])["values"] == {"step": 2}  # type: ignore[index]


# --- what is killed --------------------------------------------------------------------------------------------------


def kept(project: Project, point: str) -> tuple[str, object]:
    """What an agent that was killed at a point leaves in the end, and how often it said that it did a step."""
    assert project.tested is not None
    thread = VictimThread(project, project.tested)
    thread.inject(kill(at=point))
    ended = thread.ended(thread.call("saves:keeps", {"steps": 3}))
    result = thread.client.runs.join(thread.id, ended["run_id"])
    endings = [one["ending"] for one in ended["attempts"]]
    return point, [endings, result, max(thread.did().values(), default=0)]


def test_what_was_saved_or_appended_is_there_once_wherever_the_agent_dies(
    tested_hosts: Callable[[str], Project],
) -> None:
    project = tested_hosts("zygote")
    saves = [{"done": 3}, {"done": 2}, {"done": 1}]
    whole = {"state": {"done": 3}, "events": [1, 2, 3], "saves": saves}
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        found = dict(pool.map(lambda point: kept(project, point), points(6)))
    assert found == {point: [["agent_signal", "completed"], whole, 1] for point in points(6)}


@pytest.mark.parametrize("point", ["after:change_thread_state:2", "after:put:2"])
def test_what_was_acknowledged_is_there_once_although_the_host_dies_at_once(
    tested_hosts: Callable[[str], Project], point: str
) -> None:
    host = tested_hosts("zygote").tested
    assert host is not None
    thread = host.thread()
    thread.inject(kill(at=point, target="host"))
    run = thread.run("call", {"call": "saves:keeps", "with": {"steps": 3}})
    assert (run.status, run.endings) == ("success", ["host_gone", "completed"])
    assert thread.values == {"done": 3}
    assert [one["values"] for one in host.client.threads.get_history(thread.id)] == [{"done": n} for n in (3, 2, 1)]
    state = httpx.get(f"{host.url}/threads/{thread.id}/thread-state/events").json()
    assert state["value"] == [1, 2, 3]


def test_what_was_saved_before_the_agent_failed_is_what_the_next_run_goes_on_from(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    assert thread.ended(thread.call("saves:fails_after", {"done": 2}))["status"] == "error"
    run = thread.ended(thread.call("saves:keeps", {"steps": 3}))
    result = thread.client.runs.join(thread.id, run["run_id"])
    assert isinstance(result, dict)
    assert result["saves"] == [{"done": 3}, {"done": 2}]


# --- outside any run -------------------------------------------------------------------------------------------------


async def test_a_notebook_works_on_a_thread_that_it_names(shared: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTVISOR_ENDPOINT", shared.hosts[0].url)
    thread = f"notebook-{uuid4()}"
    with pytest.raises(InvalidInput, match="pass thread_id"):
        checkpoint.save("plan", 1)
    first = checkpoint.save("plan", {"from": "a notebook"}, thread_id=thread)
    assert await checkpoint.aload(first, thread_id=thread) == {"from": "a notebook"}
    revision = await thread_state.aset("k", [1], thread_id=thread)
    large = "x".join(str(uuid4()) for _ in range(60_000))
    assert thread_state.append("k", large, expected_revision=revision, thread_id=thread) > revision
    with pytest.raises(Conflict):
        thread_state.set("k", "late", expected_revision=revision, thread_id=thread)
    assert thread_state.get("k", thread_id=thread) == [1, large]
    client = client_of(shared.hosts[0])
    seen = called(client, "saves:load", thread)[1]
    assert seen == {"from": "a notebook"}
    called(client, "saves:save", thread, key="plan", state="from a run")
    assert checkpoint.load(thread_id=thread) == "from a run"
    assert [one.key for one in checkpoint.list(thread_id=thread)] == ["plan", "plan"]
