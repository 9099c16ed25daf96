"""One webhook on its way: signed, to the address that was checked, and what each answer means."""

import base64
import hashlib
import hmac
from collections.abc import Generator
from ipaddress import ip_address

import pytest
from tests.support.webhooks import Receiver, receiving

from agentvisor.host.config_http import signing_key
from agentvisor.host.webhook_address import Address, WebhookAddresses
from agentvisor.host.webhook_sender import Heard, Webhook, send, signed


@pytest.fixture
def receiver() -> Generator[Receiver]:
    with receiving() as receiver:
        yield receiver


def at(address: str) -> WebhookAddresses:
    async def resolve(_host: str, _port: int) -> list[Address]:
        return [ip_address(address)]

    return WebhookAddresses(allow_private=True, resolve=resolve)


async def test_it_is_posted_to_the_checked_address_under_its_own_name(receiver: Receiver) -> None:
    webhook = Webhook(f"http://hooks.test:{receiver.port}/hook?a=b", "run-1", b'{"a":1}')
    answer = await send(webhook, addresses=at("127.0.0.1"), key=b"secret", now_s=1_700_000_000)
    assert answer.heard is Heard.YES
    [got] = receiver.got
    assert (got.path, got.body) == ("/hook?a=b", b'{"a":1}')
    assert got.headers["host"] == f"hooks.test:{receiver.port}"
    assert (got.headers["webhook-id"], got.headers["webhook-timestamp"]) == ("run-1", "1700000000")
    digest = hmac.new(b"secret", b'run-1.1700000000.{"a":1}', hashlib.sha256).digest()
    assert got.headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"


def test_the_signature_is_that_of_standard_webhooks() -> None:
    # The example of the specification's own libraries.
    key = signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    webhook = Webhook("https://a.test/", "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}')
    assert signed(webhook, key, 1614265330)["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_without_a_key_it_is_not_signed() -> None:
    assert "webhook-signature" not in signed(Webhook("https://a.test/", "r", b""), None, 1)


@pytest.mark.parametrize(
    "status, heard",
    [
        (200, Heard.YES), (204, Heard.YES), (301, Heard.NEVER), (307, Heard.NEVER), (400, Heard.NEVER),
        (404, Heard.NEVER), (410, Heard.NEVER), (408, Heard.NOT_YET), (425, Heard.NOT_YET), (429, Heard.NOT_YET),
        (500, Heard.NOT_YET), (503, Heard.NOT_YET),
    ],
)  # fmt: skip
async def test_what_an_answer_means(receiver: Receiver, status: int, heard: Heard) -> None:
    receiver.answers = [status]
    webhook = Webhook(f"http://127.0.0.1:{receiver.port}/", "r", b"{}")
    assert (await send(webhook, addresses=WebhookAddresses(allow_private=True), key=None, now_s=1)).heard is heard
    assert len(receiver.got) == 1  # also where it was redirected to itself


async def test_nobody_there_is_worth_another_try() -> None:
    webhook = Webhook("http://127.0.0.1:9/", "r", b"{}")
    answer = await send(webhook, addresses=WebhookAddresses(allow_private=True), key=None, now_s=1)
    assert answer.heard is Heard.NOT_YET


async def test_a_name_that_has_moved_to_a_private_address_is_not_followed(receiver: Receiver) -> None:
    addresses = iter(["93.184.216.34", "127.0.0.1"])

    async def resolve(_host: str, _port: int) -> list[Address]:
        return [ip_address(next(addresses))]

    public = WebhookAddresses(allow_private=False, resolve=resolve)
    url = f"https://hooks.test:{receiver.port}/"
    await public.check(url)
    answer = await send(Webhook(url, "r", b"{}"), addresses=public, key=None, now_s=1)
    assert (answer.heard, receiver.got) == (Heard.NEVER, [])
    assert "127.0.0.1, which is not a public address" in answer.says


async def test_a_proxy_of_the_environment_is_not_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    webhook = Webhook(f"http://hooks.test:{receiver.port}/", "r", b"{}")
    assert (await send(webhook, addresses=at("127.0.0.1"), key=None, now_s=1)).heard is Heard.YES
