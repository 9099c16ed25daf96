"""Without a key, only this machine's programs and pages get in; with one, whoever has it."""

import json
import logging
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from fastapi import WebSocket
from tests.host.http.conftest import app_without_temporal, config_in
from tests.host.issuer import AUDIENCE, ISSUER, publishing, rsa_key, token
from tests.support.temporal import free_ports

from agentvisor.host.api_keys import hash_of
from agentvisor.host.config import load_config
from agentvisor.host.http.server import serving
from agentvisor.host.http.services import Served


@pytest.mark.parametrize(
    "headers, status",
    [
        ({}, 200),
        ({"Host": "127.0.0.1:8090"}, 200),
        ({"Host": "[::1]:8090"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "http://127.0.0.1:8090"}, 200),
        ({"Origin": "https://smith.langchain.com"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
async def test_a_host_without_a_key_answers_its_own_machine_only(
    api: httpx.AsyncClient, headers: dict[str, str], status: int
) -> None:
    response = await api.get("/info", headers=headers)
    assert response.status_code == status


@pytest.mark.parametrize(
    "headers, status",
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic secret"}, 401),
        ({"X-Api-Key": "sécret"}, 401),
        ({"Authorization": "Bearer secret"}, 200),
        ({"X-Api-Key": "secret"}, 200),
        ({"X-Api-Key": "secret", "Origin": "https://app.example", "Host": "agents.example"}, 200),
    ],
)
async def test_a_host_with_a_key_answers_whoever_has_it(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    app = await app_without_temporal(config_in(tmp_path, http__operator_key="secret"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://agents.example") as client:
        encoded = {name: value.encode() for name, value in headers.items()}
        assert (await client.get("/info", headers=encoded)).status_code == status
        assert (await client.get("/ok")).status_code == 200


async def test_an_owners_key_opens_what_is_theirs_and_not_what_is_the_hosts(tmp_path: Path) -> None:
    keys = [{"name": "annas", "owner": "anna", "hash": hash_of("annas")}]
    app = await app_without_temporal(config_in(tmp_path, http__api_keys=keys, http__operator_key="op"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://agents.example") as client:
        seen = {
            (key, path): (await client.get(path, headers={"X-Api-Key": key})).status_code
            for key in ("annas", "op", "none")
            for path in ("/info", "/metrics", "/openapi.json")
        }
    assert seen == {
        ("annas", "/info"): 200,
        ("annas", "/metrics"): 403,
        ("annas", "/openapi.json"): 200,
        ("op", "/info"): 200,
        ("op", "/metrics"): 200,
        ("op", "/openapi.json"): 200,
        ("none", "/info"): 401,
        ("none", "/metrics"): 401,
        ("none", "/openapi.json"): 401,
    }


async def test_two_keys_are_none(tmp_path: Path) -> None:
    """What stands before the host may have looked at the other one."""
    app = await app_without_temporal(config_in(tmp_path, http__operator_key="op"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://agents.example") as client:
        for name, value in (("authorization", "Bearer op"), ("x-api-key", "op")):
            response = await client.get("/info", headers=[(name, value), (name, value)])
            assert response.status_code == 401


@pytest.mark.parametrize("name, value", [("x-auth-scheme", "langsmith"), ("x-user-id", "anna"), ("cookie", "key=op")])
async def test_no_header_but_the_keys_opens_anything(tmp_path: Path, name: str, value: str) -> None:
    app = await app_without_temporal(config_in(tmp_path, http__operator_key="op"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://agents.example") as client:
        assert (await client.get("/info", headers={name: value})).status_code == 401


async def test_where_tokens_cannot_be_checked_nobody_gets_in(tmp_path: Path) -> None:
    with publishing() as issuer:
        issuer.status = 500
        (tmp_path / "agentvisor.yaml").write_text(
            f"http: {{jwt: {{issuer: '{ISSUER}', audience: {AUDIENCE}, jwks_url: '{issuer.url}'}}}}"
        )
        app = await app_without_temporal(load_config(tmp_path, environ={}))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://agents.example") as client:
            response = await client.get("/info", headers={"authorization": f"Bearer {token(rsa_key())}"})
    assert (response.status_code, response.json()["code"]) == (503, "unavailable")
    assert response.headers["retry-after"] == "1"


# --- WebSockets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, headers, opens",
    [
        ({}, {}, True),
        ({}, {"origin": "http://localhost:3000"}, True),
        ({}, {"origin": "https://evil.example"}, False),
        ({}, {"host": "evil.example"}, False),
        ({"http__operator_key": "op"}, {}, False),
        ({"http__operator_key": "op"}, {"x-api-key": "wrong"}, False),
        ({"http__operator_key": "op"}, {"x-api-key": "op"}, True),
        ({"http__operator_key": "op"}, {"x-api-key": "op", "origin": "https://any.example"}, True),
        (
            {"http__operator_key": "op", "http__cors_origins": "https://a.example"},
            {"x-api-key": "op", "origin": "https://b.example"},
            False,
        ),
        (
            {"http__operator_key": "op", "http__cors_origins": "https://a.example"},
            {"x-api-key": "op", "origin": "https://a.example"},
            True,
        ),
    ],
)
async def test_a_websocket_opens_for_those_who_may_call(
    tmp_path: Path,
    settings: dict[str, str],
    headers: dict[str, str],
    caplog: pytest.LogCaptureFixture,
    *,
    opens: bool,
) -> None:
    """A browser asks nobody before it opens one, so that the host looks at the page itself."""
    config = config_in(tmp_path, http__port=free_ports(1)[0], **settings)
    app = await app_without_temporal(config)

    @app.websocket("/echo")
    async def echo(socket: WebSocket, services: Served) -> None:
        await socket.accept()
        await socket.send_text(f"owner {services.owner!r}")

    async with serving(app, config.http):
        sent = dict(headers)
        url = f"ws://{sent.pop('host', 'localhost')}:{config.http.port}/echo"
        connecting = websockets.connect(url, additional_headers=sent, host="127.0.0.1")
        if opens:
            async with connecting as socket:
                assert await socket.recv() == "owner ''"
            return
        with pytest.raises(websockets.InvalidStatus) as refused:
            await connecting
    response = refused.value.response
    assert response.status_code == (401 if "op" not in headers.values() and settings else 403)
    assert response.body is not None
    assert json.loads(response.body)["code"] in ("unauthenticated", "permission_refused")
    # A stranger is not to fill the log with errors: who is refused is counted, and told in one line in ten seconds.
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


async def test_a_server_that_cannot_say_why_closes_the_websocket_all_the_same(tmp_path: Path) -> None:
    app = await app_without_temporal(config_in(tmp_path, http__operator_key="op"))
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    for query in (b"", b"x" * 20_000):
        await app({"type": "websocket", "path": "/any", "query_string": query, "headers": []}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}] * 2


# --- pages of other origins ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin, allowed", [("https://a.example", True), ("https://b.example", False)])
async def test_with_configured_origins_no_other_page_may_ask(tmp_path: Path, origin: str, *, allowed: bool) -> None:
    settings = {"http__operator_key": "op", "http__cors_origins": "https://a.example, https://c.example"}
    app = await app_without_temporal(config_in(tmp_path, **settings))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://agents.example") as client:
        asked = await client.options("/threads", headers={"Origin": origin, "Access-Control-Request-Method": "POST"})
        assert (asked.headers.get("access-control-allow-origin") == origin) is allowed


async def test_a_page_reads_also_why_it_was_refused(tmp_path: Path) -> None:
    app = await app_without_temporal(config_in(tmp_path, http__operator_key="op"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://agents.example") as client:
        for path, status in (("/info", 401), (f"/info?{'x' * 20_000}", 414)):
            response = await client.get(path, headers={"Origin": "https://studio.example"})
            assert response.status_code == status
            assert response.headers["access-control-allow-origin"] == "*"


async def test_studio_sends_json_as_text_and_with_a_key(tmp_path: Path) -> None:
    app = await app_without_temporal(config_in(tmp_path, http__operator_key="op"))
    headers = {"Origin": "https://smith.langchain.com", "Content-Type": "text/plain;charset=UTF-8", "X-Api-Key": "op"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://agents.example") as client:
        response = await client.post("/assistants/search", content=b'{"graph_id": "none of ours"}', headers=headers)
    assert response.status_code == 404
    assert "'none of ours'" in response.json()["detail"]


async def test_a_page_may_read_where_its_run_is(api: httpx.AsyncClient) -> None:
    response = await api.get("/info", headers={"Origin": "http://localhost:3000"})
    assert response.headers["access-control-allow-origin"] == "http://localhost:3000"
    exposed = response.headers["access-control-expose-headers"].lower()
    assert {"content-location", "x-pagination-total", "x-pagination-next"} <= set(exposed.split(", "))


async def test_studio_may_reach_the_private_network(api: httpx.AsyncClient) -> None:
    response = await api.options(
        "/threads",
        headers={
            "Origin": "https://smith.langchain.com",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "x-api-key",
            "Access-Control-Request-Private-Network": "true",
        },
    )
    assert response.status_code == 200
    assert response.headers["access-control-allow-private-network"] == "true"


async def test_a_foreign_page_is_not_even_told_what_it_may(api: httpx.AsyncClient) -> None:
    response = await api.options(
        "/threads", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    )
    assert response.status_code == 400
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    "settings, headers, answer",
    [
        ({}, {}, "unknown_command"),
        ({}, {"origin": "https://evil.example"}, "permission_refused"),
        ({"http__operator_key": "op"}, {}, "unauthenticated"),
        ({"http__operator_key": "op"}, {"x-api-key": "op"}, "unknown_command"),
    ],
)
async def test_a_threads_websocket_is_behind_the_same_check(
    tmp_path: Path, settings: dict[str, str], headers: dict[str, str], answer: str
) -> None:
    config = config_in(tmp_path, http__port=free_ports(1)[0], **settings)
    async with serving(await app_without_temporal(config), config.http):
        url = f"ws://localhost:{config.http.port}/threads/one/stream/events"
        connecting = websockets.connect(url, additional_headers=headers)
        if answer == "unknown_command":
            async with connecting as socket:
                await socket.send('{"id": 1, "method": "nope"}')
                assert json.loads(await socket.recv())["error"] == answer
            return
        with pytest.raises(websockets.InvalidStatus) as refused:
            await connecting
    assert refused.value.response.body is not None
    assert json.loads(refused.value.response.body)["code"] == answer


async def test_a_message_over_the_limit_closes_the_websocket(tmp_path: Path) -> None:
    config = config_in(tmp_path, http__port=free_ports(1)[0], http__max_body="1000")
    url = f"ws://localhost:{config.http.port}/threads/one/stream/events"
    async with serving(await app_without_temporal(config), config.http), websockets.connect(url) as socket:
        await socket.send("x" * 1001)
        await socket.wait_closed()
        assert socket.close_code == 1009
