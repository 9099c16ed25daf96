"""What decrypts for Temporal's UI: behind its own key, for its pages alone, and for the place that a payload names."""

from base64 import b64encode
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from temporalio.api.common.v1 import Payload, Payloads
from tests.host.http.conftest import app_without_temporal, config_in
from tests.support.encryption import encryption

from agentvisor.host.codec.client import keyring_of
from agentvisor.host.codec.payloads import sealed
from agentvisor.host.codec.places import Place

CODEC_KEY = "a key of Temporal's UI"
UI = "http://localhost:8233"
PLAIN = Payload(metadata={"encoding": b"json/plain"}, data=b'"secret"')
ENCRYPTION = encryption("k", "old", codec_key=CODEC_KEY)


def written(key: str = "k", thread: str = "t") -> Payload:
    writing = keyring_of(encryption(key)).writing
    assert writing is not None
    return sealed(PLAIN, writing, Place("default", thread))


@pytest.fixture
async def http(tmp_path: Path) -> AsyncGenerator[httpx.AsyncClient]:
    config = config_in(tmp_path, http__operator_key="operators key").model_copy(update={"encryption": ENCRYPTION})
    transport = httpx.ASGITransport(await app_without_temporal(config))
    async with httpx.AsyncClient(transport=transport, base_url="http://host:8090") as client:
        yield client


async def decode(http: httpx.AsyncClient, *payloads: Payload, **headers: str) -> httpx.Response:
    body = MessageToDict(Payloads(payloads=payloads))
    given = {"authorization": f"Bearer {CODEC_KEY}", "x-namespace": "default", **headers}
    return await http.post("/codec/decode", json=body, headers=given)


def in_answer(answer: httpx.Response) -> list[Payload]:
    assert answer.status_code == 200, answer.text
    return list(ParseDict(answer.json(), Payloads()).payloads)


async def test_payloads_of_any_thread_and_key_are_decrypted_and_plain_ones_stay(http: httpx.AsyncClient) -> None:
    assert in_answer(await decode(http, written(), PLAIN, written("old", "other"))) == [PLAIN] * 3


async def test_what_cannot_be_decrypted_says_so_in_its_place_and_hides_nothing_else(http: httpx.AsyncClient) -> None:
    moved = written()
    moved.metadata["agentvisor-place"] = b'["default","other"]'
    found = in_answer(await decode(http, moved, written("unknown"), written()))
    assert found[2] == PLAIN
    assert b"was damaged or cut" in found[0].data
    assert b"key 'unknown', which this host does not have" in found[1].data


async def test_a_payload_is_of_the_namespace_that_is_looked_at(http: httpx.AsyncClient) -> None:
    (found,) = in_answer(await decode(http, written(), **{"x-namespace": "another"}))
    assert b"is looked at in namespace another" in found.data


@pytest.mark.parametrize(
    "shown",
    ["", "Bearer wrong", "Bearer operators key", "Basic !", f"Basic {b64encode(b'ui:wrong').decode()}"],
)
async def test_only_its_own_key_opens_it(http: httpx.AsyncClient, shown: str) -> None:
    answer = await decode(http, written(), authorization=shown)
    assert (answer.status_code, answer.headers["www-authenticate"].partition(" ")[0]) == (401, "Basic")
    assert "secret" not in answer.text
    assert (await http.get("/codec", headers={"x-api-key": "operators key"})).status_code == 401


async def test_a_browser_may_show_it_as_a_password(http: httpx.AsyncClient) -> None:
    basic = f"Basic {b64encode(f'ui:{CODEC_KEY}'.encode()).decode()}"
    assert in_answer(await decode(http, written(), authorization=basic)) == [PLAIN]
    assert (await http.get("/codec", headers={"authorization": basic})).status_code == 200


async def test_its_key_opens_nothing_else(http: httpx.AsyncClient) -> None:
    shown = {"authorization": f"Bearer {CODEC_KEY}"}
    assert (await http.get("/info", headers=shown)).status_code == 401


async def test_pages_of_temporals_ui_may_read_the_answer_and_other_pages_may_not(http: httpx.AsyncClient) -> None:
    preflight = await http.options(
        "/codec/decode",
        headers={
            "origin": UI,
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization,content-type,x-namespace",
        },
    )
    assert preflight.status_code == 200
    allowed = preflight.headers["access-control-allow-headers"]
    assert all(name in allowed for name in ("authorization", "content-type", "x-namespace"))
    ours, others = (
        await decode(http, written(), origin=UI),
        await decode(http, written(), origin="https://evil.example"),
    )
    for answer in (preflight, ours):
        assert answer.headers["access-control-allow-origin"] == UI
        assert answer.headers["access-control-allow-credentials"] == "true"
    assert "access-control-allow-origin" not in others.headers


FAR = "https://temporal.example.com"


@pytest.mark.parametrize(
    "http, allows",
    [
        ({"http__operator_key": "operators key"}, True),
        ({}, True),
        ({"http__operator_key": "operators key", "http__cors_origins": ["https://chat.example.com"]}, True),
        ({"http__operator_key": "operators key", "http__cors_origins": ["*"]}, False),
        ({"http__operator_key": "operators key", "http__cors_origins": [FAR]}, False),
    ],
)
async def test_which_pages_may_call_the_api_says_nothing_of_which_may_have_payloads_decrypted(
    tmp_path: Path, http: dict[str, object], *, allows: bool
) -> None:
    """A browser asks before it sends the key: what is not answered with 200 stops it, whatever the headers say."""
    origins = [FAR] if allows else ["https://temporal.elsewhere.example", "*"]
    given = encryption("k", codec_key=CODEC_KEY, codec_origins=origins)
    config = config_in(tmp_path, **http).model_copy(update={"encryption": given})
    transport = httpx.ASGITransport(await app_without_temporal(config))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8090") as client:
        asked = {
            "origin": FAR,
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization,authorization-extras,content-type,x-namespace",
        }
        preflight = await client.options("/codec/decode?preserveStorageRefs=true", headers=asked)
        answer = await decode(client, written(), origin=FAR)
    assert (preflight.status_code == 200) is allows
    for one in (preflight, answer):
        assert one.headers.get("access-control-allow-origin") == (FAR if allows else None)
        assert one.headers["vary"].lower().partition(",")[0] == "origin"
    assert not allows or answer.headers["access-control-allow-credentials"] == "true"
    assert not allows or preflight.headers["access-control-allow-credentials"] == "true"


@pytest.mark.parametrize("body", [b"{}", b"[]", b"null", b'{"payloads": 1}'])
async def test_a_body_that_is_none_is_refused_and_no_crash(http: httpx.AsyncClient, body: bytes) -> None:
    answer = await http.post("/codec/decode", content=body, headers={"authorization": f"Bearer {CODEC_KEY}"})
    assert answer.status_code == (200 if body == b"{}" else 422), answer.text


async def test_it_is_off_without_its_key(tmp_path: Path) -> None:
    config = config_in(tmp_path).model_copy(update={"encryption": encryption("k")})
    transport = httpx.ASGITransport(await app_without_temporal(config))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8090") as client:
        answer: Any = await decode(client, written())
    assert (answer.status_code, "encryption.codec_key is not set" in answer.text) == (404, True)
