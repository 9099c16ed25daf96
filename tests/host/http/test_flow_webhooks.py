"""Webhooks of runs on a real host: what they are told, and that nothing waits for them."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import UnprocessableEntityError
from tests.host.http.conftest import config_in
from tests.host.http.test_flow_threads import unique
from tests.support.temporal import TemporalProcess, free_ports
from tests.support.waiting import until
from tests.support.webhooks import Got, Receiver, receiving

from agentvisor.host.app import Host, running_host
from agentvisor.host.temporal_client import connect

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]

SECRET = "whsec_" + base64.b64encode(b"a key of the test's own").decode()


@pytest.fixture(scope="module")
def receiver() -> Generator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def telling(temporal: TemporalProcess, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Host]:
    """A host that may send webhooks to this machine."""
    config = config_in(
        tmp_path_factory.mktemp("telling"),
        http__port=free_ports(1)[0],
        http__webhook_allow_private=True,
        http__webhook_secret=SECRET,
        http__webhook_max_body=8_000,
        temporal__task_queue="telling",
    )
    async with running_host(config, await connect(temporal.address, "default")) as host:
        yield host


@pytest_asyncio.fixture(loop_scope="session")
async def client(telling: Host) -> AsyncGenerator[LangGraphClient]:
    async with get_client(url=telling.url) as client:
        yield client


async def heard(receiver: Receiver, path: str, times: int = 1) -> Got:
    await until(lambda: len(receiver.at(path)) >= times, seconds=30)
    return receiver.at(path)[-1]


async def test_the_end_of_a_run_is_told_with_the_run_and_its_values(
    client: LangGraphClient, receiver: Receiver
) -> None:
    named = unique()
    run = await client.runs.create(
        named, "waiting", input={"count": 1}, if_not_exists="create", webhook=receiver.url("/done"), metadata={"n": 1}
    )
    got = await heard(receiver, "/done")
    told = got.told
    shown = dict(await client.runs.get(named, run["run_id"]))
    assert {name: told[name] for name in shown if name != "updated_at"} == {
        name: value for name, value in shown.items() if name != "updated_at"
    }
    assert (told["status"], told["error"]) == ("success", None)
    assert told["values"] == {"count": 2, "log": ["worked", "waited"]}
    assert told["kwargs"]["webhook"] == receiver.url("/done")
    assert told["run_started_at"] <= told["run_ended_at"] <= told["webhook_sent_at"]
    assert got.headers["webhook-id"] == run["run_id"]
    content = f"{run['run_id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    digest = hmac.new(b"a key of the test's own", content, hashlib.sha256).digest()
    assert got.headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"


async def test_each_way_to_end_is_told(client: LangGraphClient, receiver: Receiver, tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def start(path: str, agent: str, **fields: Any) -> tuple[str, str]:
        named = unique()
        run = await client.runs.create(named, agent, if_not_exists="create", webhook=receiver.url(path), **fields)
        return named, run["run_id"]

    await start("/failed", "failing", input={"count": 1})
    await start("/asks", "asking", input={"count": 1})
    await start("/plain", "plain", input={"a": 1})
    waits, pending = await start("/delayed", "waiting", input={}, after_seconds=600)
    await client.runs.cancel(waits, pending)
    busy, undone = await start("/undone", "waiting", input={"gate": str(gate)})
    await until(gate.with_suffix(".started").exists)
    await client.runs.cancel(busy, undone, action="rollback", wait=True)

    failed = (await heard(receiver, "/failed")).told
    assert (failed["status"], failed["error"]) == ("error", {"error": "ValueError", "message": "boom!"})
    assert failed["values"]["count"] == 2
    asks = (await heard(receiver, "/asks")).told
    assert (asks["status"], asks["values"]["log"]) == ("success", ["worked"])
    plain = (await heard(receiver, "/plain")).told
    assert (plain["status"], plain["values"]) == ("success", {"echo": {"a": 1}})
    delayed = (await heard(receiver, "/delayed")).told
    assert (delayed["status"], delayed["values"], delayed["run_started_at"]) == ("interrupted", None, None)
    rolled_back = (await heard(receiver, "/undone")).told
    assert (rolled_back["status"], rolled_back["values"], rolled_back["run_id"]) == ("rollback", None, undone)


async def test_the_next_run_does_not_wait_and_changes_nothing_of_what_is_told(
    client: LangGraphClient, receiver: Receiver
) -> None:
    named = unique()
    receiver.hold.clear()
    try:
        receiver.answers = [503]
        await client.runs.wait(
            named, "waiting", input={"count": 1}, if_not_exists="create", webhook=receiver.url("/slow")
        )
        await heard(receiver, "/slow")
        values = await client.runs.wait(named, "waiting", input={"count": 10})
        assert values["count"] == 11  # type: ignore[index,call-overload]
    finally:
        receiver.hold.set()
    again = await heard(receiver, "/slow", 2)
    assert [one.told["values"]["count"] for one in receiver.at("/slow")] == [2, 2]
    assert {one.headers["webhook-id"] for one in receiver.at("/slow")} == {again.told["run_id"]}


async def test_a_receiver_that_refuses_is_not_asked_again(
    client: LangGraphClient, receiver: Receiver, telling: Host
) -> None:
    named = unique()
    receiver.answers = [410]
    run = await client.runs.create(named, "plain", input=1, if_not_exists="create", webhook=receiver.url("/refuses"))
    await telling.threads.until_told(named, run["run_id"])  # type: ignore[arg-type]
    assert len(receiver.at("/refuses")) == 1
    thread = await telling.threads.get(named)  # type: ignore[arg-type]
    assert thread.notices == {}


async def test_a_run_without_a_thread_is_told_before_its_thread_goes(
    client: LangGraphClient, receiver: Receiver
) -> None:
    receiver.answers = [500]
    run = await client.runs.create(None, "waiting", input={"count": 1}, webhook=receiver.url("/stateless"))
    told = (await heard(receiver, "/stateless", 2)).told
    assert (told["run_id"], told["values"]["count"]) == (run["run_id"], 2)

    async def gone() -> bool:
        found = await client.threads.search(ids=[run["thread_id"]])
        return not found

    await until(gone)


async def test_values_that_are_too_large_are_left_out_with_a_mark(client: LangGraphClient, receiver: Receiver) -> None:
    await client.runs.create(
        unique(), "plain", input="x" * 3_000, if_not_exists="create", webhook=receiver.url("/large")
    )
    told = (await heard(receiver, "/large")).told
    assert told["kwargs"]["input"] == "x" * 3_000
    assert told["values"] == {"echo": "x" * 3_000}
    await client.runs.create(
        unique(), "plain", input="x" * 6_000, if_not_exists="create", webhook=receiver.url("/larger")
    )
    got = await heard(receiver, "/larger")
    assert len(got.body) <= 8_000
    assert got.told["values"]["__type__"] == "too_large"
    assert got.told["kwargs"]["input"] == "x" * 6_000


async def test_a_refused_url_starts_no_run(sdk: LangGraphClient, http: httpx.AsyncClient, receiver: Receiver) -> None:
    """On a host as it is configured without a word."""
    for url in (receiver.url("/private"), "https://localhost/", "http://example.com/", "/threads", ""):
        named = unique()
        with pytest.raises(UnprocessableEntityError, match="webhook"):
            await sdk.runs.create(named, "plain", if_not_exists="create", webhook=url)
        assert (await http.get(f"/threads/{named}")).status_code == 404
        body = json.dumps({"assistant_id": "plain", "webhook": url})
        assert (await http.post("/runs", content=body)).status_code == 422
    assert receiver.at("/private") == []
