"""Without a key, only this machine's programs and pages get in; with one, whoever has it."""

from pathlib import Path

import httpx
import pytest
from tests.host.http.conftest import app_without_temporal, config_in


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
