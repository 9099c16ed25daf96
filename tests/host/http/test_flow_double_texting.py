"""A run that comes while another is at work: what becomes of both and of the thread, as the LangGraph server has it."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError
from tests.host.http.test_flow_thread_search import unreadable
from tests.host.http.test_flow_threads import unique
from tests.support.waiting import until

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return tmp_path / "gate"


def opened(gate: Path) -> str:
    """A gate that keeps nobody; the state keeps the name of the last one."""
    gate.with_name("open").touch()
    return str(gate.with_name("open"))


async def at_the_gate(sdk: LangGraphClient, gate: Path) -> tuple[str, str, str]:
    """A thread with a run that has ended, and one that waits at the gate."""
    named = unique()
    await sdk.runs.wait(named, "waiting", input={"count": 100}, if_not_exists="create")
    [first] = await sdk.runs.list(named)
    run = await sdk.runs.create(named, "waiting", input={"gate": str(gate), "count": 1})
    await until(gate.with_suffix(".started").exists)
    return named, first["run_id"], run["run_id"]


async def statuses(sdk: LangGraphClient, named: str) -> dict[str, str]:
    return {one["run_id"]: one["status"] for one in await sdk.runs.list(named)}


async def states(sdk: LangGraphClient, named: str) -> list[tuple[Any, int, list[str]]]:
    """Newest first: the count, how much has been logged, and what is next."""
    return [
        (one["values"].get("count"), len(one["values"].get("log", [])), one["next"])
        for one in await sdk.threads.get_history(named, limit=100)
    ]


FIRST = [(101, 2, []), (101, 1, ["wait"]), (100, 0, ["work"]), (None, 0, ["__start__"])]


async def test_interrupt_ends_those_before_and_goes_on_from_what_they_did(sdk: LangGraphClient, gate: Path) -> None:
    named, first, old = await at_the_gate(sdk, gate)
    queued = await sdk.runs.create(named, "waiting", input={"count": 7})
    new = await sdk.runs.create(
        named, "waiting", input={"count": 50, "gate": opened(gate)}, multitask_strategy="interrupt"
    )
    assert (new["status"], new["multitask_strategy"]) == ("pending", "interrupt")
    values = await sdk.runs.join(named, new["run_id"])
    assert (values["count"], values["log"]) == (51, ["worked", "waited", "worked", "worked", "waited"])
    assert await statuses(sdk, named) == {
        new["run_id"]: "success",
        queued["run_id"]: "interrupted",
        old: "interrupted",
        first: "success",
    }
    assert await states(sdk, named) == [
        (51, 5, []),
        (51, 4, ["wait"]),
        (50, 3, ["work"]),
        (2, 3, ["__start__"]),
        (2, 3, ["wait"]),
        (1, 2, ["work"]),
        (101, 2, ["__start__"]),
        *FIRST,
    ]


async def test_rollback_leaves_nothing_of_those_before(
    sdk: LangGraphClient, http: httpx.AsyncClient, gate: Path
) -> None:
    named, first, old = await at_the_gate(sdk, gate)
    queued = await sdk.runs.create(named, "waiting", input={"count": 7})
    new = await sdk.runs.create(
        named, "waiting", input={"count": 50, "gate": opened(gate)}, multitask_strategy="rollback"
    )
    assert new["multitask_strategy"] == "rollback"
    assert set(await statuses(sdk, named)) == {new["run_id"], first}  # at once, though the old one may be alive
    values = await sdk.runs.join(named, new["run_id"])
    assert (values["count"], values["log"]) == (51, ["worked", "waited", "worked", "waited"])
    assert await statuses(sdk, named) == {new["run_id"]: "success", first: "success"}
    assert await states(sdk, named) == [
        (51, 4, []),
        (51, 3, ["wait"]),
        (50, 2, ["work"]),
        (101, 2, ["__start__"]),
        *FIRST,
    ]
    for gone in (old, queued["run_id"]):
        with pytest.raises(NotFoundError):
            await sdk.runs.get(named, gone)
        joined = await http.get(f"/threads/{named}/runs/{gone}/join")
        assert (joined.status_code, joined.json()["__error__"]["error"]) == (200, "NotFound")


async def test_whoever_waits_for_a_run_that_is_rolled_back_is_told_so(
    sdk: LangGraphClient, http: httpx.AsyncClient, gate: Path
) -> None:
    named, _, old = await at_the_gate(sdk, gate)
    joining = asyncio.create_task(http.get(f"/threads/{named}/runs/{old}/join"))
    streaming = asyncio.create_task(http.get(f"/threads/{named}/runs/{old}/stream"))
    await asyncio.sleep(0.2)  # both are on their way; that they have arrived changes nothing of what they are told
    await sdk.runs.create(named, "waiting", input={"gate": opened(gate)}, multitask_strategy="rollback")
    assert "__error__" in (await joining).json()
    assert f"has no run {old}" in (await streaming).text


async def test_a_cancel_with_rollback_leaves_the_thread_as_before(
    sdk: LangGraphClient, http: httpx.AsyncClient, gate: Path
) -> None:
    named, first, old = await at_the_gate(sdk, gate)
    before = await sdk.threads.get_history(named, limit=4)
    answer = await http.post(f"/threads/{named}/runs/{old}/cancel?wait=1&action=rollback")
    assert (answer.status_code, answer.json()) == (200, {})
    assert answer.headers["location"] == f"/threads/{named}/runs/{old}/join"
    assert await statuses(sdk, named) == {first: "success"}
    assert await states(sdk, named) == FIRST
    thread = await sdk.threads.get(named)
    assert (thread["status"], thread["values"]) == ("idle", {"count": 101, "log": ["worked", "waited"]})
    assert [one["checkpoint"] for one in await sdk.threads.get_history(named)] != [one["checkpoint"] for one in before]
    with pytest.raises(NotFoundError):
        await sdk.runs.cancel(named, old, action="rollback")
    for action in ("interrupt", "rollback"):
        with pytest.raises(NotFoundError, match="already success"):
            await sdk.runs.cancel(named, first, action=action)  # type: ignore[arg-type]


async def test_an_answer_that_is_rolled_back_was_never_given(sdk: LangGraphClient, gate: Path) -> None:
    named = unique()
    given = {"count": 0, "gate": str(gate)}
    await sdk.runs.wait(named, "asking_at_a_gate", input=given, if_not_exists="create")
    asked = await sdk.threads.get_state(named)
    slow = await sdk.runs.create(named, "asking_at_a_gate", command={"resume": "no"})
    await until(gate.with_suffix(".started").exists)
    await sdk.runs.cancel(named, slow["run_id"], wait=True, action="rollback")
    assert await sdk.threads.get_state(named) == asked
    assert (await sdk.threads.get(named))["status"] == "interrupted"
    gate.touch()
    values = await sdk.runs.wait(named, "asking_at_a_gate", command={"resume": "yes"})
    assert values["log"] == ["worked", "answer yes"]


async def test_a_run_that_has_ended_is_deleted_with_its_checkpoints(sdk: LangGraphClient) -> None:
    named = unique()
    for count in (1, 5):
        await sdk.runs.wait(named, "waiting", input={"count": count}, if_not_exists="create")
    second, first = [one["run_id"] for one in await sdk.runs.list(named)]
    await sdk.runs.delete(named, first)
    assert await states(sdk, named) == [(6, 4, []), (6, 3, ["wait"]), (5, 2, ["work"]), (2, 2, ["__start__"])]
    with pytest.raises(NotFoundError):
        await sdk.runs.delete(named, first)
    with pytest.raises(NotFoundError):
        await sdk.runs.delete(str(uuid4()), first)
    await sdk.runs.delete(named, second)
    assert await states(sdk, named) == []
    assert await sdk.runs.list(named) == []
    assert (await sdk.threads.get(named))["status"] == "idle"
    values = await sdk.runs.wait(named, "waiting", input={"count": 7})
    assert values == {"count": 8, "log": ["worked", "waited"]}


async def test_a_run_that_was_a_fork_is_deleted_and_so_is_the_run_that_it_forked(sdk: LangGraphClient) -> None:
    named = unique()
    await sdk.runs.wait(named, "waiting", input={"count": 1}, if_not_exists="create")
    [original] = await sdk.runs.list(named)
    line = await sdk.threads.get_history(named, limit=100)
    before_work = next(one for one in line if one["next"] == ["work"])["checkpoint"]["checkpoint_id"]

    async def forked() -> str:
        await sdk.runs.wait(named, "waiting", input={"count": 50}, checkpoint_id=before_work)
        assert (await sdk.threads.get_state(named))["values"]["count"] == 51  # type: ignore[call-overload]
        return (await sdk.runs.list(named))[0]["run_id"]

    await sdk.runs.delete(named, await forked())
    assert await sdk.threads.get_history(named, limit=100) == line

    fork = await forked()
    beside = [one for one in await sdk.threads.get_history(named, limit=100) if one not in line]
    await sdk.runs.delete(named, original["run_id"])
    assert await sdk.threads.get_history(named, limit=100) == beside
    values = await sdk.runs.wait(named, "waiting", input={"log": ["again"]})
    assert values == {"count": 52, "log": [*beside[0]["values"]["log"], "again", "worked", "waited"]}
    assert fork in await statuses(sdk, named)


async def test_a_run_that_is_alive_is_deleted_and_the_thread_goes_on(sdk: LangGraphClient, gate: Path) -> None:
    named, first, old = await at_the_gate(sdk, gate)
    await sdk.runs.delete(named, old)
    assert set(await statuses(sdk, named)) == {first}
    values = await sdk.runs.wait(named, "waiting", input={"count": 7, "gate": opened(gate)})
    assert values["log"] == ["worked", "waited"] * 2


async def test_a_run_that_was_deleted_while_another_is_alive_goes_once_that_has_ended(
    sdk: LangGraphClient, gate: Path
) -> None:
    named, first, live = await at_the_gate(sdk, gate)
    await sdk.runs.delete(named, first)
    assert set(await statuses(sdk, named)) == {live}
    gate.touch()
    values = await sdk.runs.join(named, live)
    assert values["log"] == ["worked", "waited"] * 2
    assert await states(sdk, named) == [(2, 4, []), (2, 3, ["wait"]), (1, 2, ["work"]), (101, 2, ["__start__"])]


async def test_many_runs_are_cancelled_at_once(sdk: LangGraphClient, http: httpx.AsyncClient, gate: Path) -> None:
    named, _, old = await at_the_gate(sdk, gate)
    queued = await sdk.runs.create(named, "waiting", input={"count": 7})
    body = {"thread_id": named, "run_ids": [old, queued["run_id"], "unknown"]}
    assert (await http.post("/runs/cancel", json=body)).status_code == 204
    await sdk.runs.join(named, old)
    assert {old: "interrupted", queued["run_id"]: "interrupted"}.items() <= (await statuses(sdk, named)).items()
    assert (await http.post("/runs/cancel", json=body)).status_code == 404
    for wrong in (
        {},
        {"status": "foo"},
        {"thread_id": named},
        {"run_ids": [old]},
        {"status": "all", "thread_id": named},
    ):
        assert (await http.post("/runs/cancel", json=wrong)).status_code == 422, wrong
    gone = {"thread_id": unique(), "run_ids": [old]}
    assert (await http.post("/runs/cancel", json=gone)).status_code == 404


async def test_all_that_waits_is_cancelled_in_every_thread(
    sdk: LangGraphClient, http: httpx.AsyncClient, gate: Path
) -> None:
    named, _, old = await at_the_gate(sdk, gate)
    later = [await sdk.runs.create(named, "waiting", input={}), await sdk.runs.create(named, "waiting", input={})]
    alone = unique()
    delayed = await sdk.runs.create(alone, "waiting", input={}, if_not_exists="create", after_seconds=600)
    await until(lambda: listed_as_busy(sdk, {named, alone}))
    assert (await http.post("/runs/cancel", json={"status": "pending"})).status_code == 204
    found = await statuses(sdk, named)
    assert [found[one["run_id"]] for one in later] == ["interrupted", "interrupted"]
    assert await statuses(sdk, alone) == {delayed["run_id"]: "interrupted"}
    assert found[old] == "running"
    assert (await http.post("/runs/cancel?action=rollback", json={"status": "running"})).status_code == 204
    await until(lambda: is_idle(sdk, named))
    assert old not in await statuses(sdk, named)
    assert await states(sdk, named) == FIRST


async def test_a_thread_that_cannot_be_read_keeps_no_other_threads_runs_alive(
    sdk: LangGraphClient, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = {"assistant_id": "waiting", "input": {}, "if_not_exists": "create", "after_seconds": 600}
    good, broken = unique(), unique()
    runs = {one: (await http.post(f"/threads/{one}/runs", json=later)).json()["run_id"] for one in (good, broken)}
    await until(lambda: listed_as_busy(sdk, {good, broken}))
    with monkeypatch.context() as patch:
        unreadable(patch, broken)
        answer = await http.post("/runs/cancel", json={"status": "all"})
        assert (answer.status_code, broken in answer.json()["detail"]) == (503, True)
        assert "1 runs were cancelled, and those of 1 threads were not" in answer.json()["detail"]
        assert await statuses(sdk, good) == {runs[good]: "interrupted"}
    await sdk.runs.cancel(broken, runs[broken])


async def listed_as_busy(sdk: LangGraphClient, wanted: set[str]) -> bool:
    return wanted <= {one["thread_id"] for one in await sdk.threads.search(status="busy", limit=1000)}


async def is_idle(sdk: LangGraphClient, named: str) -> bool:
    return (await sdk.threads.get(named))["status"] != "busy"


async def test_a_delayed_run_keeps_its_thread_busy_and_lets_others_pass(sdk: LangGraphClient) -> None:
    named = unique()
    delayed = await sdk.runs.create(named, "waiting", input={"count": 1}, if_not_exists="create", after_seconds=1.5)
    assert (delayed["status"], (await sdk.threads.get(named))["status"]) == ("pending", "busy")
    with pytest.raises(ConflictError, match=f"busy with run {delayed['run_id']}"):
        await sdk.runs.create(named, "waiting", multitask_strategy="reject")
    assert (await sdk.runs.wait(named, "waiting", input={"count": 5}))["count"] == 6
    values = await sdk.runs.join(named, delayed["run_id"])
    assert (values["count"], len(values["log"])) == (2, 4)
    run = dict(await sdk.runs.get(named, delayed["run_id"]))
    assert run["attempts"][0]["scheduled_at"] >= run["created_at"]


async def test_a_delayed_run_is_cancelled_while_it_waits(sdk: LangGraphClient) -> None:
    named = unique()
    for action in ("interrupt", "rollback"):
        delayed = await sdk.runs.create(named, "waiting", input={}, if_not_exists="create", after_seconds=600)
        await sdk.runs.cancel(named, delayed["run_id"], wait=True, action=action)  # type: ignore[arg-type]
        assert (delayed["run_id"] in await statuses(sdk, named)) is (action == "interrupt")
        assert (await sdk.threads.get(named))["status"] == "idle"
