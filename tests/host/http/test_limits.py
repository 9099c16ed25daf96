"""What is too large, or comes too slowly, is refused over a real connection, with a body that the SDK can read."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from langgraph_sdk.errors import APIStatusError, _raise_for_status_typed
from tests.host.http.conftest import app_without_temporal, config_in
from tests.support.temporal import free_ports

from agentvisor.host.http.server import serving

KIB = 1024


@pytest.fixture
async def url(tmp_path: Path) -> AsyncGenerator[str]:
    """A host that listens, and has little patience."""
    port = free_ports(1)[0]
    config = config_in(tmp_path, http__port=port, http__read_timeout="300ms")
    app = await app_without_temporal(config)
    app.add_api_route("/slow", _slow)
    async with serving(app, config.http):
        yield f"http://127.0.0.1:{port}"


def readable(response: httpx.Response, code: str) -> str:
    """As LangGraph's client reads it."""
    with pytest.raises(APIStatusError) as error:
        _raise_for_status_typed(response)
    said = response.json()
    assert said["code"] == code
    assert said["message"] == said["detail"]
    assert said["message"] in str(error.value)
    return str(said["message"])


async def test_a_url_over_the_limit_is_414(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as client:
        response = await client.get(f"/interrupts?agent={'x' * 17 * KIB}")
        assert response.status_code == 414
        assert "(http.max_url)" in readable(response, "value_too_large")
        assert (await client.get("/info")).status_code == 200


async def test_headers_over_the_limit_are_431(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as client:
        many = {f"x-{number}": "v" * 1000 for number in range(40)}
        response = await client.get("/info", headers=many)
        assert response.status_code == 431
        assert "(http.max_headers)" in readable(response, "value_too_large")
        assert (await client.get("/info", headers={"cookie": "c" * 30 * KIB})).status_code == 200


async def test_headers_without_an_end_end_the_connection(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as client:
        response = await client.get("/info", headers={"cookie": "c" * KIB * KIB})
    assert response.status_code == 400
    assert "http.max_headers" in readable(response, "invalid_input")


async def test_what_is_no_http_is_told_so(url: str) -> None:
    reply = await _conversation(url, [b"\x16\x03\x01\x02\x00\x01\x00 hello\r\n\r\n"])
    assert reply.startswith(b"HTTP/1.1 400")
    assert json.loads(reply.partition(b"\r\n\r\n")[2])["code"] == "invalid_input"


@pytest.mark.thorough
async def test_headers_that_come_byte_by_byte_are_not_waited_for(url: str) -> None:
    """Slow loris: each byte is in time, the whole never comes."""
    reply = await _conversation(url, [b"GET /info HTTP/1.1\r\n"], then=b"X-a: b\r\n")
    assert reply.startswith(b"HTTP/1.1 408")
    assert "(http.read_timeout)" in json.loads(reply.partition(b"\r\n\r\n")[2])["message"]


@pytest.mark.thorough
async def test_a_second_request_of_a_connection_is_not_waited_for_either(url: str) -> None:
    whole = b"GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n"
    reply = await _conversation(url, [whole, b"GET /info HTTP/1.1\r\n"], then=b"X-a: b\r\n")
    assert reply.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 408" in reply


@pytest.mark.thorough
async def test_an_idle_connection_is_kept_for_the_next_request(url: str) -> None:
    """Longer than a request may take: a load balancer that comes back meets none that is just closing."""
    async with httpx.AsyncClient(base_url=url) as client:
        first = await client.get("/ok")
        port = _port_of(first)
        await asyncio.sleep(0.6)
        second = await client.get("/ok")
        assert (first.status_code, second.status_code, _port_of(second)) == (200, 200, port)


def _port_of(response: httpx.Response) -> int:
    return int(response.extensions["network_stream"].get_extra_info("client_addr")[1])


@pytest.mark.thorough
async def test_a_connection_that_says_nothing_is_closed(url: str) -> None:
    assert (await _conversation(url, [])).startswith(b"HTTP/1.1 408")


@pytest.mark.thorough
async def test_a_body_that_comes_byte_by_byte_is_not_waited_for(url: str) -> None:
    head = (
        b"POST /threads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
    )
    reply = await _conversation(url, [head], then=b" ")
    assert reply.startswith(b"HTTP/1.1 408")
    assert "the body did not come within 0.3 s" in json.loads(reply.partition(b"\r\n\r\n")[2])["message"]


@pytest.mark.thorough
async def test_a_route_may_take_longer_than_a_request(url: str) -> None:
    """The deadline is the client's, not the host's."""
    async with httpx.AsyncClient(base_url=url) as client:
        response = await client.get("/slow")
    assert (response.status_code, response.json()) == (200, "done")


async def _slow() -> str:
    await asyncio.sleep(0.6)  # twice the time that a client has
    return "done"


async def _conversation(url: str, parts: list[bytes], *, then: bytes = b"") -> bytes:
    """What the host says to these, and to `then` again and again, until it closes the connection."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    for part in parts:
        writer.write(part)
        await writer.drain()

    async def drip() -> None:
        while then:
            writer.write(then)
            await writer.drain()
            await asyncio.sleep(0.02)

    dripping = asyncio.create_task(drip())
    said = b""
    try:
        async with asyncio.timeout(10):
            # What is still dripped at a connection that was closed resets it: what was said before has been read.
            with suppress(ConnectionResetError):
                while part := await reader.read(65536):
                    said += part
            return said
    finally:
        dripping.cancel()
        await asyncio.gather(dripping, return_exceptions=True)
        writer.close()


@pytest.mark.parametrize(
    "path, body",
    [
        ("/threads/search", {"ids": ["t"] * 1001}),
        ("/threads/search", {"metadata": {f"k{number}": "v" for number in range(21)}}),
        ("/threads/prune", {"thread_ids": ["t"] * 1001}),
    ],
)
async def test_lists_are_bounded(api: httpx.AsyncClient, path: str, body: object) -> None:
    response = await api.post(path, json=body)
    assert response.status_code == 422
    assert "at most" in response.json()["detail"]
