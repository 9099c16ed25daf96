"""Hosts read each other's tapes, and nobody else does: over a real connection, with real signatures."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from time import time
from typing import Any

import httpx
import pytest
from temporalio.client import Client
from tests.host.http.conftest import app_without_temporal, config_in
from tests.support.temporal import free_ports

from agentvisor.core.errors import Unavailable
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.host.config_http import HttpConfig
from agentvisor.host.config_tree import Config
from agentvisor.host.from_config import peer_credential
from agentvisor.host.http.peer_door import PeerDoor
from agentvisor.host.http.server import serving
from agentvisor.host.peer_credential import HEADER, PeerCredential, peer_key
from agentvisor.host.peer_feed import PATH, PeerFeed, Sign
from agentvisor.host.peers import Peers, address_of, identity_of
from agentvisor.host.streams import RunStreams
from agentvisor.host.tape import Event, Gap, TapeId

RUN = TapeId(ThreadId("thread"), RunId("run"))
TAPE = f"{PATH}thread/run"
HOME = "machine-1-abc"
KEY = PeerCredential("a key")


@pytest.mark.parametrize(
    "http, opens",
    [
        ({}, True),
        ({"operator_key": "op"}, False),
        ({"peer_key": "p"}, False),
        ({"api_keys": [{"name": "a", "owner": "a", "hash": "sha256:" + "0" * 64}]}, False),
        ({"jwt": {"issuer": "i", "audience": "a", "jwks_file": "keys.json"}}, False),
    ],
)
def test_where_callers_need_keys_the_door_opens_by_a_secret_alone(http: dict[str, Any], *, opens: bool) -> None:
    """Owners may reach loopback by way of a proxy, and read a host's id in their runs' attempts."""
    signed = PeerCredential(None).sign(HOME, PATH)
    credential = peer_credential(Config.model_validate({"http": http}))
    assert credential.accepts(signed, HOME, PATH) is opens


@asynccontextmanager
async def home(tmp_path: Path, streams: RunStreams, credential: PeerCredential = KEY) -> AsyncGenerator[str]:
    """A host whose door is open; its address."""
    port = free_ports(1)[0]
    address = f"127.0.0.1:{port}"
    app = await app_without_temporal(config_in(tmp_path, http__port=port))
    async with serving(PeerDoor(app, streams, credential, HOME, address), HttpConfig(port=port)):
        yield address


async def feed_of(address: str, credential: PeerCredential = KEY) -> PeerFeed:
    client = await Client.connect(f"127.0.0.1:{free_ports(1)[0]}", lazy=True)
    peers = Peers(client, "queue", "machine-2-def")
    peers._addresses[HOME] = address
    return PeerFeed(peers, credential)


def told(events: int, clock: Callable[[], float] = time) -> RunStreams:
    streams = RunStreams(clock=clock)
    streams.attempt_started(RUN, 1, 1000)
    for number in range(events):
        streams.publish(RUN, 1, "custom", ["sub:1"], b"%d" % number)
    return streams


async def read(feed: PeerFeed, after: int | None = None, takes_over: int = 0) -> list[Any]:
    return [one async for one in feed.tape(HOME, RUN, after, takes_over=takes_over)]


async def test_another_host_reads_the_same_events_to_the_end(tmp_path: Path) -> None:
    streams = told(3)
    streams.close(RUN)
    async with home(tmp_path, streams) as address:
        found = await read(await feed_of(address))
        later = await read(await feed_of(address), after=found[2].id)
    own = [one async for one in streams.subscribe(RUN, None)]
    assert [one for one in found if isinstance(one, Event)] == own
    assert [one for one in later if isinstance(one, Event)] == own[2:]
    assert found[-1] == Sign(own[-1].id + 1, ended=True) if isinstance(own[-1], Event) else False


async def test_a_copy_keeps_when_each_event_came(tmp_path: Path) -> None:
    moments = count(1_700_000_000.0, 0.25)
    streams = told(3, lambda: next(moments))
    streams.close(RUN)
    copy = RunStreams(clock=lambda: 1_800_000_000.0)
    async with home(tmp_path, streams) as address:
        for one in await read(await feed_of(address)):
            if isinstance(one, Event):
                copy.take(RUN, one)
    times = [one.at_ms for one in copy.kept(RUN)]
    assert times == [one.at_ms for one in streams.kept(RUN)]
    assert times == sorted(set(times))
    assert 1_700_000_000_000 <= times[0] < times[-1] < 1_700_000_010_000


async def test_who_goes_on_with_a_run_gets_what_there_is_and_ends_what_was(tmp_path: Path) -> None:
    streams = told(3)
    async with home(tmp_path, streams) as address:
        found = await read(await feed_of(address), takes_over=2)
    events = [one for one in found if isinstance(one, Event)]
    assert [one.data for one in events[1:]] == [b"0", b"1", b"2"]
    # The attempt that lost its run still talks, and nobody hears it.
    streams.publish(RUN, 1, "custom", [], b"late")
    tape = streams.get(RUN)
    assert tape is not None
    assert tape.next_id == events[-1].id + 1


@pytest.mark.parametrize(
    "change",
    [
        {"key": "another key"},
        {"key": None},
        {"host_id": "machine-1-other"},
        {"target": f"{PATH}thread/other"},
        {"target": f"{PATH}other/run"},
        {"after_signing": "&takes_over=9"},
        {"host": "evil.example:80"},
        {"header": ""},
        {"header": "x.y.z"},
        {"header": f"{10**30}.a.b"},
    ],
    ids=str,
)
async def test_a_question_that_no_host_of_the_deployment_asked_is_refused(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    target = f"{TAPE}?after=1"
    credential = PeerCredential(change.get("key", "a key"))
    shown = credential.sign(change.get("host_id", HOME), change.get("target", target))
    async with home(tmp_path, told(1)) as address, httpx.AsyncClient() as http:
        headers = {HEADER: change.get("header", shown), "host": change.get("host", address)}
        refused = await http.get(f"http://{address}{target}{change.get('after_signing', '')}", headers=headers)
    assert refused.status_code == 401
    assert "http.peer_key" in refused.json()["detail"]


async def test_an_old_signature_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = TAPE
    monkeypatch.setattr("agentvisor.host.peer_credential.time", lambda: 1_000_000.0)
    shown = KEY.sign(HOME, target)
    monkeypatch.setattr("agentvisor.host.peer_credential.time", lambda: 1_000_061.0)
    assert not KEY.accepts(shown, HOME, target)
    monkeypatch.setattr("agentvisor.host.peer_credential.time", lambda: 1_000_059.0)
    assert KEY.accepts(shown, HOME, target)


async def test_who_answers_must_have_the_key_too(tmp_path: Path) -> None:
    async def impostor(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"forged"})

    port = free_ports(1)[0]
    async with serving(impostor, HttpConfig(port=port)):
        with pytest.raises(Unavailable, match="is not host"):
            await read(await feed_of(f"127.0.0.1:{port}"))


async def test_what_is_not_there_is_unavailable(tmp_path: Path) -> None:
    async with home(tmp_path, RunStreams()) as address:
        feed = await feed_of(address)
        with pytest.raises(Unavailable, match="404"):
            await read(feed)
    with pytest.raises(Unavailable, match="does not answer"):
        await read(feed)


async def test_bad_numbers_and_methods_are_refused(tmp_path: Path) -> None:
    async with home(tmp_path, told(1)) as address, httpx.AsyncClient(base_url=f"http://{address}") as http:
        for method, target, status in (("GET", f"{TAPE}?after=x", 422), ("POST", TAPE, 405)):
            headers = {HEADER: KEY.sign(HOME, target)}
            assert (await http.request(method, target, headers=headers)).status_code == status
        # The rest is the API's.
        assert (await http.get("/info")).status_code == 200


def test_the_peers_key_is_made_of_the_operators_where_none_is_set() -> None:
    made = peer_key(None, "operator")
    assert made == peer_key(None, "operator") != peer_key(None, "another")
    assert made != "operator"
    assert peer_key("own", "operator") == "own"
    assert peer_key(None, None) is None


def test_a_host_that_listens_everywhere_gives_an_address_of_its_machine() -> None:
    assert address_of("127.0.0.1", 8090, None) == "127.0.0.1:8090"
    assert address_of("::1", 8090, None) == "[::1]:8090"
    assert address_of("0.0.0.0", 8090, "127.0.0.1:7233") == "127.0.0.1:8090"
    assert identity_of(HOME, "a:1") == f"{HOME}@a:1"


def test_a_gap_is_told_on(tmp_path: Path) -> None:
    streams = told(1)
    streams.take(RUN, Gap(9_000_000))
    tape = streams.get(RUN)
    assert tape is not None
    assert tape.next_id == 9_000_000
