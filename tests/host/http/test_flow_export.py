"""Threads in files: taken to another cluster, whole; and of a file that is not sound, nothing is left there."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
import yaml
from tests.host.http.agents import __file__ as agents_file
from tests.host.http.export_agents import __file__ as own_agents_file
from tests.support.encryption import settings
from tests.support.temporal import TemporalProcess, free_ports, temporal_server
from tests.support.waiting import until

from agentvisor.host.api_keys import hash_of
from agentvisor.host.app import Host, running_host
from agentvisor.host.config import load_config
from agentvisor.host.temporal_client import client_of
from agentvisor.protocol.exports import Reader, Writer
from agentvisor.protocol.v1 import export_pb2

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]

AGENTS = {
    **{name: f"{agents_file}:{name}" for name in ("asking", "nested", "deltas", "failing")},
    **{name: f"{own_agents_file}:{name}" for name in ("paused", "at_work", "growing", "saving")},
}


@dataclass(frozen=True)
class Place:
    """A host of a cluster."""

    http: httpx.AsyncClient
    values: Path | None
    """Its external storage, if it has one."""

    async def run(self, thread: str, agent: str, **body: Any) -> Any:
        asked = {"assistant_id": agent, "if_not_exists": "create", **body}
        return (await self.http.post(f"/threads/{thread}/runs/wait", json=asked)).raise_for_status().json()

    async def run_in_background(self, thread: str, agent: str, **body: Any) -> Any:
        asked = {"assistant_id": agent, "if_not_exists": "create", **body}
        return (await self.http.post(f"/threads/{thread}/runs", json=asked)).raise_for_status().json()

    async def get(self, path: str, **query: Any) -> Any:
        return (await self.http.get(path, params=query)).raise_for_status().json()

    async def export(self, thread: str) -> bytes:
        return (await self.http.get(f"/threads/{thread}/export")).raise_for_status().content

    async def bring(self, data: bytes | AsyncIterator[bytes], **query: str) -> httpx.Response:
        return await self.http.post("/threads/import", params=query, content=data)

    async def imported(self, data: bytes, **query: str) -> Any:
        response = await self.bring(data, **query)
        assert response.status_code == 200, response.text
        return response.json()

    async def is_there(self, thread: str) -> bool:
        return (await self.http.get(f"/threads/{thread}")).status_code == 200

    def objects(self) -> list[Path]:
        return [one for one in self.values.rglob("*") if one.is_file()] if self.values else []


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def home(temporal: TemporalProcess, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Place]:
    async with place(tmp_path_factory.mktemp("home"), temporal.address, storage=True) as made:
        yield made


@pytest.fixture(scope="module")
def other_temporal(tmp_path_factory: pytest.TempPathFactory) -> Generator[TemporalProcess]:
    with temporal_server(tmp_path_factory.mktemp("other")) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def away(other_temporal: TemporalProcess, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Place]:
    """A host of another cluster, with an external storage of its own."""
    async with place(tmp_path_factory.mktemp("away"), other_temporal.address, storage=True) as made:
        yield made


class place:  # noqa: N801 - a context manager
    def __init__(self, folder: Path, temporal: str, *, storage: bool, **settings: Any) -> None:
        self._values = folder / "values" if storage else None
        limits = {"url": f"file://{self._values}", "max_inline_value": 20_000} if storage else {}
        http = {"port": free_ports(1)[0], **settings.pop("http", {})}
        queue = {"task_queue": f"export-{uuid4().hex[:8]}", **settings.pop("keeping", {})}
        storage_ = {**limits, **settings.pop("limits", {})}
        given = {"agents": AGENTS, "http": http, "temporal": queue, "storage": storage_, **settings}
        (folder / "agentvisor.yaml").write_text(yaml.safe_dump(given))
        self._config, self._temporal = load_config(folder, environ={}), temporal
        self._host: Any = None

    async def __aenter__(self) -> Place:
        self._host = running_host(self._config, await client_of(self._config, address=self._temporal))
        host: Host = await self._host.__aenter__()
        key = {"X-Api-Key": "operators"} if self._config.http.needs_key else {}
        return Place(httpx.AsyncClient(base_url=host.url, timeout=60, headers=key), self._values)

    async def __aexit__(self, *error: object) -> None:
        await self._host.__aexit__(*error)


def unique() -> str:
    return f"export-{uuid4()}"


async def told(at: Place, thread: str) -> dict[str, Any]:
    """All that the API tells of a thread."""
    base = f"/threads/{thread}"
    return {
        "history": await at.get(f"{base}/history", limit=100),
        "state": await at.get(f"{base}/state", subgraphs=True),
        "interrupts": await at.get(f"{base}/interrupts"),
        "runs": await at.get(f"{base}/runs", limit=100),
        "thread-state": await at.get(f"{base}/thread-state"),
        "thread": {**(await at.get(base)), "updated_at": None},
    }


@pytest.mark.parametrize("agent", ["asking", "nested", "deltas", "growing"])
async def test_a_thread_that_waits_is_taken_to_another_cluster_and_answered_there(
    home: Place, away: Place, agent: str
) -> None:
    thread = unique()
    given = {"items": ["first"]} if agent == "deltas" else {"count": 1} if agent in ("asking", "nested") else {}
    await home.http.post("/threads", json={"thread_id": thread, "metadata": {"of": "anna", "float": 2.0}})
    await home.http.put(f"/threads/{thread}/thread-state/k", json={"value": {"x": [1, "ü"]}})
    await home.run(thread, agent, input=given, metadata={"why": "a test"})
    before = await told(home, thread)
    assert before["thread"]["status"] == "interrupted"
    shown = await away.imported(await home.export(thread))
    assert shown["thread_id"] == thread
    after = await told(away, thread)
    assert after == before
    (asked,) = after["interrupts"]
    path = f"/threads/{thread}/interrupts/{asked['id']}"
    for place_ in (away, home):  # neither knows of the other
        answered = (await place_.http.post(path, json={"answer": "yes"})).raise_for_status().json()
        ended = await place_.get(f"/threads/{thread}/runs/{answered['run_id']}/join")
        assert "answer yes" in str(ended), ended
        assert (await place_.get(f"/threads/{thread}"))["status"] == "idle"


async def test_what_tasks_have_done_is_not_done_again(home: Place, away: Place, tmp_path: Path) -> None:
    thread, ledger = unique(), tmp_path / "ledger"
    await home.run(thread, "paused", input={"ledger": str(ledger)})
    assert sorted(ledger.read_text().split()) == ["asked", "reserved"]
    await away.imported(await home.export(thread))
    ended = await away.run(thread, "paused", command={"resume": "yes"})
    assert sorted(ended["log"]) == ["answer yes", "reserved"]
    assert sorted(ledger.read_text().split()) == ["asked", "reserved"]


async def test_a_plain_agents_saves_and_effects_come_along(home: Place, away: Place, tmp_path: Path) -> None:
    thread, ledger = unique(), tmp_path / "ledger"
    assert await home.run(thread, "saving", input={"ledger": str(ledger)}) == {"before": None}
    await away.imported(await home.export(thread))
    assert await told(away, thread) == await told(home, thread)
    assert await away.run(thread, "saving", input={"ledger": str(ledger)}) == {"before": {"runs": 1}}
    assert ledger.read_text() == "told\n"


async def has_reserved(at: Place, thread: str) -> bool:
    """Whether that task is done; a moment before, the graph's own first one was."""
    tasks = (await at.get(f"/threads/{thread}/state"))["tasks"]
    return any(one["name"] == "reserve" and one["result"] for one in tasks)


async def test_a_thread_that_is_at_work_is_exported_as_it_stands_and_goes_on_in_both_places(
    home: Place, away: Place, tmp_path: Path
) -> None:
    thread, ledger, gate = unique(), tmp_path / "ledger", tmp_path / "gate"
    body = {"assistant_id": "at_work", "input": {"ledger": str(ledger), "gate": str(gate)}, "if_not_exists": "create"}
    run = (await home.http.post(f"/threads/{thread}/runs", json=body)).json()["run_id"]
    queued = (await home.http.post(f"/threads/{thread}/runs", json={**body, "after_seconds": 600})).json()["run_id"]

    async def one_is_done() -> bool:
        return ledger.exists() and "begun" in ledger.read_text() and await has_reserved(home, thread)

    await until(one_is_done)
    await away.imported(await home.export(thread))
    runs = await away.get(f"/threads/{thread}/runs")
    assert {one["run_id"]: one["status"] for one in runs} == {run: "interrupted", queued: "interrupted"}
    assert "exported while this run was under way" in runs[-1]["attempts"][0]["reason"]
    gate.touch()
    ended = await away.run(thread, "at_work", input=None)
    assert sorted(ended["log"]) == ["reserved", "through the gate"]
    assert ledger.read_text().split().count("reserved") == 1
    await home.get(f"/threads/{thread}/runs/{run}/join")
    assert sorted((await home.get(f"/threads/{thread}/state"))["values"]["log"]) == ["reserved", "through the gate"]
    await home.http.delete(f"/threads/{thread}")


async def test_who_imports_a_live_thread_neither_reads_on_nor_disturbs_those_who_read_it(
    home: Place, tmp_path: Path
) -> None:
    """Runs keep their ids in a file: the events of a run are those of its thread, too, and that may be another's."""
    thread, gate = unique(), tmp_path / "gate"
    body = {"assistant_id": "at_work", "input": {"gate": str(gate)}, "if_not_exists": "create"}
    run = (await home.http.post(f"/threads/{thread}/runs", json=body)).json()["run_id"]

    async def events(of: str) -> str:
        path = f"/threads/{of}/runs/{run}/stream"
        return (await home.http.get(path, headers={"Last-Event-ID": "-1"})).raise_for_status().text

    async def one_is_done() -> bool:
        return await has_reserved(home, thread)

    await until(one_is_done)
    imported = (await home.imported(await home.export(thread), thread_id=f"{thread}.2"))["thread_id"]
    foreign = await events(imported)
    assert "event: values" not in foreign.partition("event: gap")[0], foreign
    assert await home.get(f"/threads/{imported}/runs/{run}/join") is not None
    gate.touch()
    own = await events(thread)
    assert "event: gap" not in own
    assert "through the gate" in own, own
    await home.http.delete(f"/threads/{thread}")


def with_many_runs(data: bytes, many: int) -> bytes:
    """The file with so many runs before the one that it has."""
    records = [*Reader().feed(data)][:-1]
    at = next(number for number, one in enumerate(records) if one.thread.runs)
    older = [export_pb2.ExportRecord.FromString(records[at].SerializeToString()) for _ in range(many)]
    for number, one in enumerate(older):
        one.thread.runs[0].spec.run_id = f"run-{number}"
        one.thread.runs[0].spec.input = json.dumps({"count": number, "note": "n" * 200}).encode()
    return rewritten([*records[:at], *older, *records[at:]])


async def test_every_run_comes_along_however_many_there_are(
    home: Place, other_temporal: TemporalProcess, tmp_path: Path
) -> None:
    """Over 300 KB of what is known of runs, which is where reads of a thread leave out the oldest."""
    thread, many = unique(), 1_200
    last = (await home.run_in_background(thread, "asking", input={"count": 1}))["run_id"]
    await home.get(f"/threads/{thread}/runs/{last}/join")
    everyone = [last, *(f"run-{number}" for number in reversed(range(many)))]
    async with place(tmp_path, other_temporal.address, storage=False, keeping={"max_run_history": 0}) as there:
        await there.imported(with_many_runs(await home.export(thread), many))
        again = await there.export(thread)
        assert len(again) > 300_000
        await there.imported(again, thread_id=f"{thread}.2")
        for named in (thread, f"{thread}.2"):
            pages = [await there.get(f"/threads/{named}/runs", limit=1000, offset=at) for at in (0, 1000)]
            assert [run["run_id"] for page in pages for run in page] == everyone
        first = await there.get(f"/threads/{thread}.2/runs/run-0")
        assert first["kwargs"]["input"] == {"count": 0, "note": "n" * 200}


async def test_a_past_checkpoint_is_forked_after_an_import(home: Place, away: Place) -> None:
    thread = unique()
    await home.run(thread, "asking", input={"count": 1})
    await home.run(thread, "asking", command={"resume": "yes"})
    await away.imported(await home.export(thread))
    (past,) = [one for one in await away.get(f"/threads/{thread}/history") if one["next"] == ["work"]]
    await away.run(thread, "asking", input=None, checkpoint_id=past["checkpoint"]["checkpoint_id"])
    ended = await away.run(thread, "asking", command={"resume": "no"})
    assert ended == {"count": 2, "log": ["worked", "answer no"]}
    assert len(await away.get(f"/threads/{thread}/history")) > len(await home.get(f"/threads/{thread}/history"))


async def test_values_in_external_storage_come_along_byte_for_byte(home: Place, away: Place) -> None:
    thread = unique()
    await home.run(thread, "growing", input={})
    await home.run(thread, "growing", input={})
    assert len([one for one in home.objects() if thread in str(one)]) > 1
    there = [one for one in away.objects() if thread in str(one)]
    assert there == []
    await away.imported(await home.export(thread), thread_id=f"{thread}.copy")
    assert [one for one in away.objects() if thread in str(one)] != []
    large = (await away.get(f"/threads/{thread}.copy/state"))["values"]["large"]
    assert large == (await home.get(f"/threads/{thread}/state"))["values"]["large"]
    await away.http.delete(f"/threads/{thread}.copy")
    assert [one for one in away.objects() if thread in str(one)] == []


async def test_what_a_host_that_encrypts_imports_is_nowhere_in_the_clear(
    home: Place, other_temporal: TemporalProcess, tmp_path: Path
) -> None:
    thread = unique()
    await home.run(thread, "growing", input={})
    data = await home.export(thread)
    assert all(one.read_bytes()[:4] != b"AVO1" for one in home.objects()), "no mark of what is encrypted"
    async with place(tmp_path, other_temporal.address, storage=True, encryption=settings("k")) as sealed:
        await sealed.imported(data)
        assert {one.read_bytes()[:4] for one in sealed.objects() if thread in str(one)} == {b"AVO1"}
        state = await sealed.get(f"/threads/{thread}/state")
        assert state["values"] == (await home.get(f"/threads/{thread}/state"))["values"]
        await sealed.run(thread, "growing", input={})


def places_of(data: bytes) -> list[int]:
    """Where the records of a file end."""
    reader = Reader()
    return [reader.position for at in range(len(data)) for _ in reader.feed(data[at : at + 1])]


async def test_of_a_file_that_is_damaged_anywhere_nothing_is_left(home: Place, away: Place) -> None:
    thread = unique()
    await home.run(thread, "growing", input={})
    await home.run(thread, "growing", input={})
    data = await home.export(thread)
    ends = places_of(data)
    assert len(ends) > 8
    kept = away.objects()
    cut = [data[:length] for length in (0, 3, 18, *ends[:-1], len(data) - 1)]
    garbled = [data[: at - 9] + bytes([data[at - 9] ^ 255]) + data[at - 8 :] for at in ends]
    for one in (*cut, *garbled, data + b"x", b"PK\x03\x04" + data):
        response = await away.bring(one)
        assert response.status_code == 422, response.text
        assert re.search(r"is damaged at byte \d+ \(record \d+\)|is no exported thread", response.json()["message"])
        assert not await away.is_there(thread)

    async def nothing_is_left() -> bool:
        return away.objects() == kept

    await until(nothing_is_left)
    assert (await away.imported(data))["thread_id"] == thread


async def test_a_sound_file_with_records_that_are_no_threads_is_refused(home: Place, away: Place) -> None:
    thread = unique()
    await home.run(thread, "asking", input={"count": 1})
    records = [*Reader().feed(await home.export(thread))][:-1]
    for change, says in CHANGES:
        writer_records = [export_pb2.ExportRecord.FromString(one.SerializeToString()) for one in records]
        change(writer_records)
        response = await away.bring(rewritten(writer_records))
        assert response.status_code == 422, (says, response.text)
        assert says in response.json()["message"]
        assert not await away.is_there(thread)


def rewritten(records: list[export_pb2.ExportRecord]) -> bytes:
    """A file whose checksums are right."""
    writer = Writer()
    return writer.begin(records[0].header) + b"".join(map(writer.record, records[1:])) + writer.end()


def _without_a_value(records: list[export_pb2.ExportRecord]) -> None:
    values = [one for one in records if one.WhichOneof("kind") == "value"]
    records.remove(next(one for one in values if one.value.key not in {other.value.base for other in values}))


def _another_value(records: list[export_pb2.ExportRecord]) -> None:
    next(one for one in records if one.WhichOneof("kind") == "value").value.data += b"!"


def _outside(records: list[export_pb2.ExportRecord]) -> None:
    """A place in the importing host's storage, that somebody would like to read."""
    value = next(one for one in records if one.WhichOneof("kind") == "value").value
    value.location, value.stored_size, value.data = "someone/else/value", len(value.data), b""


def _run_that_is_none(records: list[export_pb2.ExportRecord]) -> None:
    next(one for one in records if one.thread.runs).thread.runs[0].spec.run_id = "../.."


def _input_that_is_none(records: list[export_pb2.ExportRecord]) -> None:
    next(one for one in records if one.thread.runs).thread.runs[0].spec.input = b"{"


def _newer(records: list[export_pb2.ExportRecord]) -> None:
    next(one for one in records if one.thread.version).thread.version = 99


def _unknown_status(records: list[export_pb2.ExportRecord]) -> None:
    next(one for one in records if one.thread.runs).thread.runs[0].status = 77  # pyright: ignore[reportAttributeAccessIssue]


CHANGES: list[tuple[Any, str]] = [
    (_without_a_value, "values are missing"),
    (_another_value, "do not match its key"),
    (_outside, "is not whole"),
    (_run_that_is_none, "run id"),
    (_input_that_is_none, "is not JSON"),
    (_newer, "upgrade this host"),
    (_unknown_status, "its records are not those of a thread"),
]


async def test_a_thread_that_is_there_stays_as_it_is(home: Place) -> None:
    thread = unique()
    await home.run(thread, "asking", input={"count": 1})
    data, before = await home.export(thread), await told(home, thread)
    empty = unique()
    await home.http.post("/threads", json={"thread_id": empty})
    for named in (thread, empty):
        refused = await home.bring(data, thread_id=named)
        assert refused.status_code == 409
        assert f"thread {named} exists already" in refused.json()["message"]
    assert await told(home, thread) == before
    again = await home.imported(data, thread_id=f"{thread}.2")
    assert (again["thread_id"], again["status"]) == (f"{thread}.2", "interrupted")


async def test_a_thread_that_is_not_there_is_not_exported(home: Place) -> None:
    missing = await home.http.get(f"/threads/{unique()}/export")
    assert missing.status_code == 404


async def test_what_does_not_fit_is_refused_with_what_to_do(
    home: Place, temporal: TemporalProcess, tmp_path: Path
) -> None:
    thread = unique()
    await home.run(thread, "growing", input={})
    data = await home.export(thread)
    (tmp_path / "small").mkdir()
    (tmp_path / "bare").mkdir()
    named = f"{thread}.2"
    async with place(tmp_path / "small", temporal.address, storage=False, http={"max_import": "10KiB"}) as small:
        refused = await small.bring(data, thread_id=named)
        assert (refused.status_code, refused.json()["code"]) == (413, "value_too_large")
        assert "http.max_import" in refused.json()["message"]
    limits = {"max_inline_value": 20_000}
    async with place(tmp_path / "bare", temporal.address, storage=False, limits=limits) as bare:
        refused = await bare.bring(data, thread_id=named)
        assert refused.status_code == 413
        assert "set storage.url on this host" in refused.json()["message"]
        assert not await bare.is_there(named)


async def test_who_imports_a_thread_owns_it(home: Place, temporal: TemporalProcess, tmp_path: Path) -> None:
    keys = [{"name": name, "owner": name, "hash": hash_of(f"{name}s")} for name in ("anna", "bert")]
    http = {"operator_key": "operators", "api_keys": keys}
    thread = unique()
    await home.run(thread, "asking", input={"count": 1})
    data = await home.export(thread)
    await home.http.delete(f"/threads/{thread}")
    async with place(tmp_path, temporal.address, storage=True, http=http) as there:
        anna, bert = {"X-Api-Key": "annas"}, {"X-Api-Key": "berts"}
        nobody = await there.http.post("/threads/import", content=data, headers={"X-Api-Key": "wrong"})
        assert nobody.status_code == 401
        made = await there.http.post("/threads/import", content=data, headers=anna)
        assert made.status_code == 200
        assert (await there.http.get(f"/threads/{thread}", headers=bert)).status_code == 404
        assert (await there.http.get(f"/threads/{thread}/export", headers=bert)).status_code == 404
        taken = await there.http.post("/threads/import", content=data, headers=bert)
        assert taken.status_code == 409
        exported = (await there.http.get(f"/threads/{thread}/export", headers=anna)).content
        assert b"anna" not in exported
        berts = await there.http.post("/threads/import?thread_id=berts", content=exported, headers=bert)
        assert berts.status_code == 200
        assert (await there.http.get("/threads/berts", headers=anna)).status_code == 404


async def test_an_upload_that_breaks_off_leaves_nothing(home: Place, away: Place) -> None:
    thread = unique()
    await home.run(thread, "growing", input={})
    data = await home.export(thread)
    kept = away.objects()

    async def half() -> AsyncIterator[bytes]:
        yield data[: len(data) // 2]
        await asyncio.sleep(0)
        raise ConnectionError("the client is gone")

    with pytest.raises(ConnectionError):
        await away.bring(half())

    async def nothing_is_left() -> bool:
        return away.objects() == kept

    await until(nothing_is_left)
    assert not await away.is_there(thread)
