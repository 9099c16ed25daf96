"""Where webhooks may go: public addresses, whatever a name says, and however an address is written."""

from ipaddress import ip_address

import pytest

from agentvisor.core.errors import InvalidInput, Unavailable
from agentvisor.host.webhook_address import Address, WebhookAddresses, is_public, resolved

PRIVATE = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "100.100.100.200", "192.0.0.192", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::", "fec0::1", "168.63.129.16",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_not_everybody_reaches_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_an_address_that_everybody_reaches_is_public(address: str) -> None:
    assert is_public(ip_address(address))


def naming(*addresses: str) -> WebhookAddresses:
    async def resolve(host: str, port: int) -> list[Address]:
        assert (host, port) in (("hooks.test", 443), ("hooks.test", 8443))
        return [ip_address(one) for one in addresses]

    return WebhookAddresses(allow_private=False, resolve=resolve)


async def test_the_address_that_was_checked_is_the_one_to_connect_to() -> None:
    url, address = await naming("93.184.216.34", "8.8.8.8").pinned("https://hooks.test:8443/a?b=c")
    assert (str(url), str(address)) == ("https://hooks.test:8443/a?b=c", "93.184.216.34")


async def test_one_private_address_refuses_a_name() -> None:
    with pytest.raises(InvalidInput, match=r"'hooks.test' is at 10.0.0.7.*http.webhook_allow_private"):
        await naming("93.184.216.34", "10.0.0.7").check("https://hooks.test/")


@pytest.mark.parametrize(
    "url, says",
    [
        ("http://hooks.test/", "must be an https URL"),
        ("ftp://hooks.test/", "must be an https URL"),
        ("/threads", "must be an https URL"),
        ("", "must be an https URL"),
        ("https:///path", "names no host"),
        ("https://user:key@hooks.test/", "user or password"),
        ("https://hooks.test:99999/", "no port of one"),
        ("https://hooks.test/\n", "is no URL"),
        (f"https://hooks.test/{'x' * 2000}", "2000 at most"),
    ],
)
async def test_a_url_that_cannot_be_a_webhook_is_refused(url: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        await naming("93.184.216.34").check(url)


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "localhost", "[::1]", "0"])
async def test_however_loopback_is_written_the_machines_resolver_gives_it_away(host: str) -> None:
    with pytest.raises(InvalidInput):
        await WebhookAddresses(allow_private=False).check(f"https://{host}/")


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 70}.com", "xn--zzzzzzzzzzzzzz99999"])
async def test_what_can_be_no_hosts_name_is_refused(host: str) -> None:
    with pytest.raises(InvalidInput, match=r"no name can have|cannot be resolved"):
        await WebhookAddresses(allow_private=False).check(f"https://{host}/")


async def test_a_name_without_an_address_is_refused_now_and_tried_again_later() -> None:
    with pytest.raises(InvalidInput, match="cannot be resolved"):
        await WebhookAddresses(allow_private=False).check("https://nowhere.invalid/")
    with pytest.raises(Unavailable):
        await WebhookAddresses(allow_private=False).pinned("https://nowhere.invalid/")


async def test_a_name_is_resolved_by_the_machine() -> None:
    assert ip_address("127.0.0.1") in await resolved("localhost", 443)
