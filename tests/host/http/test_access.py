"""Without a key, only this machine's programs and pages get in; with one, whoever has it."""

import json
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from tests.host.http.conftest import app_without_temporal, config_in
from tests.support.temporal import free_ports
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from agentvisor.host.http.server import serving


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


async def _refused(app: FastAPI, headers: dict[str, str], name: str = "localhost") -> tuple[int, str]:
    """What a WebSocket is refused with, over the wire; 101 and the reply to a command where it is not."""
    port = free_ports(1)[0]
    async with serving(app, "127.0.0.1", port):
        place = f"ws://{name}/threads/one/stream/events"
        try:
            async with connect(place, host="127.0.0.1", port=port, additional_headers=headers) as socket:
                await socket.send('{"id": 1, "method": "nope"}')
                return 101, json.loads(await socket.recv())["error"]
        except InvalidStatus as refused:
            return refused.response.status_code, json.loads(refused.response.body or b"{}")["code"]


@pytest.mark.parametrize(
    "headers, name, answer",
    [
        ({}, "localhost", (101, "unknown_command")),
        ({}, "127.0.0.1", (101, "unknown_command")),
        ({"Origin": "http://localhost:3000"}, "localhost", (101, "unknown_command")),
        ({"Origin": "https://smith.langchain.com"}, "localhost", (101, "unknown_command")),
        ({"Origin": "https://evil.example"}, "localhost", (403, "permission_refused")),
        ({"Origin": "null"}, "localhost", (403, "permission_refused")),
        ({}, "evil.example", (403, "permission_refused")),
    ],
)
async def test_a_websocket_of_a_foreign_page_is_refused_before_it_is_one(
    tmp_path: Path, headers: dict[str, str], name: str, answer: tuple[int, str]
) -> None:
    app = await app_without_temporal(config_in(tmp_path))
    assert await _refused(app, headers, name) == answer


@pytest.mark.parametrize(
    "headers, answer",
    [
        ({}, (401, "unauthenticated")),
        ({"Authorization": "Bearer wrong"}, (401, "unauthenticated")),
        ({"Authorization": "Bearer secret"}, (101, "unknown_command")),
        ({"X-Api-Key": "secret"}, (101, "unknown_command")),
        ({"X-Api-Key": "secret", "Origin": "https://app.example"}, (101, "unknown_command")),
    ],
)
async def test_a_websocket_needs_the_key_too(tmp_path: Path, headers: dict[str, str], answer: tuple[int, str]) -> None:
    app = await app_without_temporal(config_in(tmp_path, http__operator_key="secret"))
    assert await _refused(app, headers, "agents.example") == answer


async def test_a_message_over_the_limit_closes_the_websocket(tmp_path: Path) -> None:
    app, port = await app_without_temporal(config_in(tmp_path)), free_ports(1)[0]
    place = f"ws://127.0.0.1:{port}/threads/one/stream/events"
    async with serving(app, "127.0.0.1", port, max_message=1000), connect(place) as socket:
        await socket.send("x" * 1001)
        await socket.wait_closed()
        assert socket.close_code == 1009
