"""Every route, called by nobody, a stranger, the owner and the operator: what one owns does not exist for another."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
import websockets
import yaml
from langgraph.types import Command
from tests.host.http.agents import asking
from tests.host.http.conftest import AGENTS
from tests.host.http.declared import check_answer
from tests.host.http.route_table import TABLE, Row, Stage, Things, run
from tests.support.temporal import TemporalProcess, free_ports
from tests.support.waiting import until

from agentvisor.core.errors import NotFound, PermissionRefused
from agentvisor.host.api_keys import hash_of
from agentvisor.host.app import Host, running_host
from agentvisor.host.config import load_config
from agentvisor.host.temporal_client import connect
from agentvisor.langgraph import AgentVisorCheckpointer

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]

KEYS = {"anna": "annas key", "bert": "berts key", "operator": "operators key"}
MISSING = "00000000-0000-4000-8000-000000000000"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guarded(temporal: TemporalProcess, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Host]:
    """A host with two owners."""
    folder = tmp_path_factory.mktemp("guarded")
    agents = {name: f"{AGENTS}:{name}" for name in ("asking", "waiting", "plain")}
    keys = [{"name": name, "owner": name, "hash": hash_of(KEYS[name])} for name in ("anna", "bert")]
    settings = {
        "agents": agents,
        "http": {"port": free_ports(1)[0], "operator_key": KEYS["operator"], "api_keys": keys},
        "temporal": {"task_queue": f"owners-{uuid4().hex[:8]}"},
    }
    (folder / "agentvisor.yaml").write_text(yaml.safe_dump(settings))
    config = load_config(folder, environ={})
    async with running_host(config, await connect(temporal.address, "default")) as host:
        yield host


def client(host: Host, name: str | None) -> httpx.AsyncClient:
    headers = {"X-Api-Key": KEYS[name]} if name else {}
    return httpx.AsyncClient(base_url=host.url, headers=headers, timeout=60)


class Owner:
    """Makes what a test calls its routes about, for one owner."""

    def __init__(self, host: Host, name: str, folder: Path) -> None:
        self._http = client(host, name)
        self._folder = folder

    async def have(self, stage: Stage) -> dict[str, str]:
        """A thread at this stage."""
        mark = uuid4().hex
        if stage in ("alone", "alone and busy"):
            return await self._alone(mark, busy=stage == "alone and busy")
        created = await self._http.post("/threads", json={"metadata": {"mark": mark}})
        thread_id: str = created.json()["thread_id"]
        things = {"thread_id": thread_id, "mark": mark, "key": "k", "assistant_id": "plain"}
        at = f"/threads/{thread_id}"
        if stage == "paused":
            await self._must("PUT", f"{at}/thread-state/k", {"value": {"x": 1}})
            await self._must("POST", f"{at}/runs/wait", run("asking")(things))
            (one,) = (await self._http.get(f"{at}/runs")).json()
            (asked,) = (await self._http.get(f"{at}/interrupts")).json()
            state = (await self._http.get(f"{at}/state")).json()
            things |= {"run_id": one["run_id"], "interrupt_id": asked["id"]}
            things["checkpoint_id"] = state["checkpoint"]["checkpoint_id"]
        if stage == "busy":
            gate = self._folder / mark
            begun = await self._must("POST", f"{at}/runs", run("waiting", input={"gate": str(gate)})(things))
            things["run_id"] = begun.json()["run_id"]
            await until(lambda: _exists(gate.with_suffix(".started")))
        if stage == "cron":
            made = await self._must("POST", f"{at}/runs/crons", run(schedule="0 0 1 1 *")(things))
            things["cron_id"] = made.json()["cron_id"]
        return things

    async def _alone(self, mark: str, *, busy: bool) -> dict[str, str]:
        gate = self._folder / mark
        body = run("waiting", input={"gate": str(gate)} if busy else {}, on_completion="keep")({})
        run_id: str = (await self._must("POST", "/runs", body)).json()["run_id"]
        if busy:
            await until(lambda: _exists(gate.with_suffix(".started")))
        else:
            await self._must("GET", f"/threads/{run_id}/runs/{run_id}/join", None)
        return {"thread_id": run_id, "run_id": run_id, "mark": mark}

    async def _must(self, method: str, path: str, body: object) -> httpx.Response:
        response = await self._http.request(method, path, json=body)
        assert response.is_success, response.text
        return response

    async def seen(self, things: Things) -> list[Any]:
        """All that a stranger could have changed."""
        at = f"/threads/{things['thread_id']}"
        thread, state, runs, noted = [
            (await self._http.get(f"{at}{path}")).json() for path in ("", "/state", "/runs", "/thread-state")
        ]
        ended = [(one["run_id"], one["status"]) for one in runs]
        return [thread["metadata"], thread["status"], thread["interrupts"], state, ended, noted]

    async def close(self) -> None:
        await self._http.aclose()


async def _exists(path: Path) -> bool:
    return path.exists()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def anna(guarded: Host, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Owner]:
    owner = Owner(guarded, "anna", tmp_path_factory.mktemp("anna"))
    yield owner
    await owner.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def paused(anna: Owner) -> dict[str, str]:
    """One that many routes are called about, none of which spends it."""
    return await anna.have("paused")


async def call(host: Host, name: str | None, route: str, row: Row, things: Things) -> httpx.Response:
    method, _, path = route.partition(" ")
    for key, value in (things | row.named).items():  # type: ignore[operator]
        path = path.replace(f"{{{key}}}", value)
    assert "{" not in path, f"things have nothing for {path}"
    body = {"json": row.body(things)} if row.body else {}
    async with client(host, name) as http:
        if row.endless:
            async with http.stream(method, f"{path}?{row.query}", **body) as response:
                if response.is_success:
                    return httpx.Response(response.status_code, headers=response.headers)
                await response.aread()
                return response
        response = await http.request(method, f"{path}?{row.query}", **body)
        check_answer(method, path, response)
        return response


def of_kind(*kinds: str) -> Callable[[Any], Any]:
    return pytest.mark.parametrize("route", [name for name, row in TABLE.items() if row.kind in kinds])


@pytest.mark.parametrize("route", [name for name in TABLE if not name.startswith("WS")])
async def test_who_shows_no_key_is_told_nothing(guarded: Host, route: str) -> None:
    row = TABLE[route]
    things = dict.fromkeys(
        ("thread_id", "run_id", "checkpoint_id", "interrupt_id", "key", "assistant_id", "cron_id"), MISSING
    )
    for name, shown in ((None, {}), ("wrong", {"X-Api-Key": "wrong"})):
        async with httpx.AsyncClient(base_url=guarded.url, headers=shown) as http:
            method, _, path = route.partition(" ")
            response = await http.request(method, path.format_map({**things, "mark": "m", **row.named}))
        assert response.status_code == row.nobody, name
        if row.nobody == 401:
            assert response.json()["code"] == "unauthenticated"


@of_kind("about")
async def test_what_one_owns_does_not_exist_for_another(
    guarded: Host, anna: Owner, paused: dict[str, str], route: str
) -> None:
    row = TABLE[route]
    shared = row.stage == "paused" and not row.spends
    things = paused if shared else await anna.have(row.stage)
    before = await anna.seen(things)

    refused = await call(guarded, "bert", route, row, things)
    ids = {things[name] for name in ("thread_id", "cron_id") if name in things}
    of_none = await call(guarded, "bert", route, row, {k: MISSING if v in ids else v for k, v in things.items()})
    assert refused.status_code == row.stranger, refused.text
    told = refused.text
    for one in ids:
        told = told.replace(one, MISSING)
    assert told == of_none.text, "told apart from what does not exist"
    assert refused.is_error or '"NotFound"' in refused.text or '"type":"error"' in refused.text, refused.text
    assert await anna.seen(things) == before, "it had an effect"

    allowed = await call(guarded, "anna", route, row, things)
    assert allowed.status_code == row.status, allowed.text
    fresh = await anna.have(row.stage) if row.spends else things
    operated = await call(guarded, "operator", route, row, fresh)
    assert operated.status_code == row.status, operated.text


@of_kind("lists")
async def test_of_many_one_is_told_ones_own(guarded: Host, anna: Owner, paused: dict[str, str], route: str) -> None:
    row = TABLE[route]
    things = await anna.have(row.stage) if row.spends else paused
    before = await anna.seen(things)

    async def is_told(name: str, of: Things) -> bool:
        response = await call(guarded, name, route, row, of)
        assert response.status_code == row.status, response.text
        return row.tells(response, of)

    if not row.spends:  # Temporal's visibility lags
        await until(lambda: is_told("anna", things))
    assert not await is_told("bert", things)
    assert await anna.seen(things) == before, "it had an effect"
    assert await is_told("anna", things)
    assert await is_told("operator", await anna.have(row.stage) if row.spends else things)


@of_kind("makes")
async def test_what_is_made_is_its_makers(guarded: Host, route: str) -> None:
    row = TABLE[route]
    for maker, others in (("anna", ["bert"]), ("operator", ["anna", "bert"])):
        made = await call(guarded, maker, route, row, {})
        assert made.status_code == row.status, made.text
        path = f"/threads/{row.thread_of(made)}"
        for name, status in ((maker, 200), ("operator", 200), *((one, 404) for one in others)):
            async with client(guarded, name) as http:
                assert (await http.get(path)).status_code == status, f"{name} of what {maker} made"


@of_kind("hosts")
async def test_what_nobody_owns_is_everybodys_or_the_operators(guarded: Host, route: str) -> None:
    row = TABLE[route]
    things = {"assistant_id": "plain"}
    assert (await call(guarded, "operator", route, row, things)).status_code == row.status
    for name in ("anna", "bert"):
        assert (await call(guarded, name, route, row, things)).status_code == row.stranger


FOLLOWED = [name for name, row in TABLE.items() if row.kind == "follows" and not name.startswith("WS")]


@pytest.mark.parametrize("route", FOLLOWED)
async def test_of_a_strangers_thread_no_event_is_told(guarded: Host, anna: Owner, route: str) -> None:
    things, row = await anna.have("paused"), TABLE[route]
    path = route.partition(" ")[2].format_map(things)
    assert row.body is not None
    body = row.body(things)
    async with (
        client(guarded, "bert") as his,
        client(guarded, "anna") as hers,
        his.stream("POST", path, json=body) as told,
        hers.stream("POST", path, json=body) as follows,
    ):
        seen = "".join([line async for line in _until(follows.aiter_lines(), "interrupted")])
        assert things["interrupt_id"] in seen
        assert told.status_code == 200
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(told.aiter_lines()), 1)


async def _until(lines: AsyncIterator[str], wanted: str) -> AsyncIterator[str]:
    async for line in lines:
        yield line
        if f'"{wanted}"' in line:
            return


async def test_a_strangers_websocket_neither_tells_nor_does_anything(
    guarded: Host, anna: Owner, paused: dict[str, str]
) -> None:
    before = await anna.seen(paused)
    place = f"{guarded.url.replace('http', 'ws')}/threads/{paused['thread_id']}/stream/events"
    async with websockets.connect(place, additional_headers={"X-Api-Key": KEYS["bert"]}) as socket:
        replies = []
        for number, (method, params) in enumerate(
            (
                ("subscription.subscribe", {"channels": ["lifecycle", "values", "input"]}),
                ("agent.getTree", {}),
                ("run.start", {"assistant_id": "plain", "input": {}}),
                ("input.respond", {"interrupt_id": paused["interrupt_id"], "response": "yes"}),
            )
        ):
            await socket.send(json.dumps({"id": number, "method": method, "params": params}))
            replies.append(json.loads(await socket.recv()))
    assert [one.get("error") for one in replies] == [None, "no_such_run", "no_such_run", "no_such_run"]
    assert await anna.seen(paused) == before


RUNS = [name for name, row in TABLE.items() if "{run_id}" in name and row.kind == "about"]


@pytest.mark.parametrize("route", RUNS)
async def test_a_run_of_another_is_not_reached_by_way_of_ones_own_thread(
    guarded: Host, anna: Owner, tmp_path: Path, route: str
) -> None:
    """Its events neither: whose a run is, is asked before anything is opened or registered for it."""
    bert = Owner(guarded, "bert", tmp_path)
    hers, his = await anna.have("busy"), await bert.have("idle")
    before = await anna.seen(hers)
    async with client(guarded, "anna") as http:
        path = f"/threads/{hers['thread_id']}/runs/{hers['run_id']}/stream"
        async with http.stream("GET", path, headers={"Last-Event-ID": "-1"}) as follows:
            lines = follows.aiter_lines()
            assert "metadata" in await anext(lines)

            response = await call(guarded, "bert", route, TABLE[route], {**hers, "thread_id": his["thread_id"]})

            refused = "event: error" in response.text or "__error__" in response.text
            assert response.status_code == 404 or refused, response.text
            assert "worked" not in response.text
            assert await anna.seen(hers) == before, "it had an effect"
            async with client(guarded, "anna") as other:
                await other.post(f"/threads/{hers['thread_id']}/runs/{hers['run_id']}/cancel")
            rest = [line async for line in lines]
    assert any("data:" in line for line in rest), "her own stream went on to its end"
    await bert.close()


async def test_a_thread_of_another_is_not_made_ones_own(guarded: Host, anna: Owner, paused: dict[str, str]) -> None:
    """That an id is taken can be seen by creating it; nothing else."""
    thread_id = paused["thread_id"]
    before = await anna.seen(paused)
    async with client(guarded, "bert") as http:
        for how in ({}, {"if_exists": "do_nothing"}, {"if_exists": "raise"}):
            taken = await http.post("/threads", json={"thread_id": thread_id, **how})
            assert taken.status_code == 409
            assert set(taken.json()) == {"code", "detail", "message", "metadata"}
        body = {**run()({}), "if_not_exists": "create"}
        assert (await http.post(f"/threads/{thread_id}/runs", json=body)).status_code == 404
    assert await anna.seen(paused) == before


@pytest.mark.parametrize("name", ["bert", "bert' OR AgentVisorOwner = 'anna", "%", "*", "anna%", "AN NA"])
async def test_no_filter_leads_out_of_ones_own(guarded: Host, anna: Owner, paused: dict[str, str], name: str) -> None:
    del anna
    async with client(guarded, "bert") as http:
        for body in (
            {"metadata": {"mark": name}},
            {"metadata": {f"mark' OR '{name}": "x"}},
            {"ids": [paused["thread_id"]]},
            {"metadata": {"mark": paused["mark"]}, "status": "interrupted"},
        ):
            for path in ("/threads/search", "/threads/count"):
                if "ids" in body and path.endswith("count"):
                    continue
                response = await http.post(path, json=body)
                assert response.status_code == 422 or response.json() in ([], 0), response.text


async def test_an_agent_works_in_a_guest_of_its_owner(guarded: Host, anna: Owner, tmp_path: Path) -> None:
    bert = Owner(guarded, "bert", tmp_path)
    busy = await asyncio.gather(anna.have("busy"), bert.have("busy"))
    guests = [guarded.guests.pids(owner)["waiting"] for owner in ("anna", "bert")]  # type: ignore[arg-type]
    assert len({*guests, guarded.guests.pids().get("waiting")}) == 3
    for one, name in zip(busy, ("anna", "bert"), strict=True):
        async with client(guarded, name) as http:
            await http.post(f"/threads/{one['thread_id']}/runs/{one['run_id']}/cancel")
    await bert.close()


async def test_a_client_outside_of_runs_has_its_owners_threads(guarded: Host) -> None:
    """Over gRPC, with the same keys."""
    thread = {"configurable": {"thread_id": str(uuid4())}}
    graphs = {name: asking.compile(AgentVisorCheckpointer(endpoint=guarded.url, api_key=KEYS[name])) for name in KEYS}

    def talk() -> None:
        assert graphs["anna"].invoke({}, thread)["count"] == 1
        assert graphs["bert"].get_state(thread).values == {}
        assert list(graphs["bert"].get_state_history(thread)) == []
        with pytest.raises(NotFound, match="does not exist"):
            graphs["bert"].invoke({}, thread, durability="sync")
        graphs["bert"].checkpointer.delete_thread(thread["configurable"]["thread_id"])  # type: ignore[union-attr]
        assert graphs["operator"].get_state(thread).values["count"] == 1
        assert graphs["anna"].invoke(Command(resume="yes"), thread)["log"] == ["worked", "answer yes"]
        stranger = asking.compile(AgentVisorCheckpointer(endpoint=guarded.url, api_key="wrong"))
        with pytest.raises(PermissionRefused):
            stranger.invoke({}, thread)

    await asyncio.to_thread(talk)
