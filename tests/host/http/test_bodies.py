"""What is not JSON, or too large, is refused at the door; nothing is read in vain."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.host.http.conftest import app_without_temporal, config_in

from agentvisor.host.http.json import decode, encode

MIB = 1024 * 1024


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nope",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"metadata": {"a": 1e999}}',
        b'{"metadata": {"a": [-1.5E+400]}}',
        b"\xff",
        b"[" * 5000,
        b'{"a":' * 300 + b"1" + b"}" * 300,
        b"1" * 5000,
    ],
    ids=["open", "word", "nan", "infinity", "1e999", "-1.5E+400", "bytes", "deep", "deep object", "digits"],
)
async def test_a_body_that_is_not_json_is_refused(api: httpx.AsyncClient, body: bytes) -> None:
    response = await api.post("/threads", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 422
    assert "the body" in response.json()["detail"]


@pytest.mark.parametrize("kind", ["text/plain;charset=UTF-8", "application/x-www-form-urlencoded", None])
async def test_json_that_is_called_text_is_accepted(api: httpx.AsyncClient, kind: str | None) -> None:
    headers = {"content-type": kind} if kind else {}
    response = await api.post("/assistants/search", content=b'{"graph_id": "none of ours"}', headers=headers)
    assert response.status_code == 404
    assert "'none of ours'" in response.json()["detail"]


async def test_a_body_over_the_limit_is_refused_before_it_is_read(api: httpx.AsyncClient) -> None:
    sent = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += MIB
            yield b" " * MIB

    response = await api.post("/threads/t/runs", content=body())
    assert response.status_code == 413
    assert response.json()["code"] == "value_too_large"
    assert "the limit is 4194304 (http.max_body)" in response.json()["detail"]
    assert sent < 8 * MIB


async def test_a_body_that_declares_too_much_is_not_read_at_all(tmp_path: Path) -> None:
    app = await app_without_temporal(config_in(tmp_path))
    sent: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        raise AssertionError("the body must not be read")

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-length", b"10000000")]
    scope = {"type": "http", "method": "POST", "path": "/threads", "headers": headers, "query_string": b""}
    await app(scope, receive, send)
    assert sent[0]["status"] == 413


async def test_an_input_over_the_limit_names_its_size_and_the_setting(api: httpx.AsyncClient) -> None:
    body = {"assistant_id": "plain", "input": "x" * 2_000_000}
    response = await api.post("/threads/t/runs", json=body)
    assert response.status_code == 413
    detail = response.json()["detail"]
    assert "the run's input has 2000002 bytes" in detail
    assert "limit is 1500000 (storage.max_input)" in detail


async def test_a_client_that_leaves_while_it_sends_is_let_go(tmp_path: Path) -> None:
    app = await app_without_temporal(config_in(tmp_path))

    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect"}

    async def send(message: dict[str, object]) -> None:
        raise AssertionError("nobody listens")

    scope = {"type": "http", "method": "POST", "path": "/threads", "headers": [(b"host", b"localhost")]}
    await asyncio.wait_for(app({**scope, "query_string": b""}, receive, send), 5)


@pytest.mark.parametrize("text", ["half \ud800 a pair", "\x00", "é", '"'])
def test_any_text_is_sent_so_that_it_can_be_read_again(text: str) -> None:
    assert decode(encode([text]), "it") == [text]


@pytest.mark.parametrize("place", ["/runs", "/runs/wait", "/runs/stream", "/threads/t/runs", "/threads/t/runs/wait"])
@pytest.mark.parametrize("field", ["input", "context", "config", "command", "metadata"])
async def test_a_number_that_is_too_large_is_refused_everywhere(api: httpx.AsyncClient, place: str, field: str) -> None:
    body = f'{{"assistant_id": "plain", "{field}": {{"resume": 1e999}}}}'.encode()
    response = await api.post(place, content=body)
    assert response.status_code == 422
    assert "1e999 is larger than any number" in response.json()["detail"]


@pytest.mark.parametrize("place", ["/runs", "/threads/t/runs/stream", "/threads", "/threads/t/state"])
async def test_half_a_surrogate_pair_is_refused_and_a_whole_one_is_a_character(
    api: httpx.AsyncClient, place: str
) -> None:
    body = b'{"assistant_id": "plain", "unheard_of": {"text": "%s"}}'
    response = await api.post(place, content=body % rb"\ud83d")
    assert response.status_code == 422
    assert "half a surrogate pair" in response.json()["detail"]
    whole = await api.post(place, content=body % rb"\ud83d\ude00")
    assert "unheard_of" in whole.json()["detail"]


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"3", b'"text"'])
@pytest.mark.parametrize("place", ["/threads", "/threads/t/runs", "/runs/stream", "/threads/search"])
async def test_a_body_that_is_no_object_is_told_what_is_expected(
    api: httpx.AsyncClient, place: str, body: bytes
) -> None:
    response = await api.post(place, content=body)
    assert response.status_code == 422
    assert response.json()["detail"] == "the body must be a JSON object"
