"""Where a webhook may be sent: to public addresses over https, unless the configuration allows others.

A name is resolved when the run is created, so that its caller hears of a refusal, and again when the webhook is sent:
what it names may have changed, and the connection goes to the very address that was checked.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import httpx

from agentvisor.core.errors import InvalidInput, Unavailable

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[list[Address]]]
"""The addresses of a host name; `OSError` where there are none."""

MAX_URL = 2_000
_RESOLVE_SECONDS = 5.0
_NAT64 = IPv6Network("64:ff9b::/96")
_SPECIAL = (
    ip_network("192.0.0.0/24"),
    ip_network("64:ff9b:1::/48"),
    ip_network("fec0::/10"),
    ip_network("168.63.129.16/32"),
)
"""For special purposes, some clouds' metadata among them (Azure's is on a public number); not every Python knows."""
_LAST_PORT = 65_535


async def resolved(host: str, port: int) -> list[Address]:
    """As the machine's resolver says."""
    async with asyncio.timeout(_RESOLVE_SECONDS):
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(str(where[0]).partition("%")[0]) for *_, where in found))


@dataclass(frozen=True, slots=True)
class WebhookAddresses:
    """What webhooks may reach."""

    allow_private: bool
    """`http.webhook_allow_private`."""
    resolve: Resolve = resolved

    async def check(self, url: str) -> None:
        """Refuse a webhook that could never be sent: `InvalidInput`."""
        try:
            await self.pinned(url)
        except Unavailable as error:
            raise InvalidInput(f"webhook: {error.message}", field="webhook") from error

    async def pinned(self, url: str) -> tuple[httpx.URL, Address]:
        """The URL, and the address to connect to. `InvalidInput` where it is refused, `Unavailable` without an address.

        One address that is not public refuses the name: whoever can add one could add another next time.
        """
        parsed = self._parsed(url)
        host, port = parsed.raw_host.decode("ascii"), parsed.port or (443 if parsed.scheme == "https" else 80)
        try:
            addresses = await self.resolve(host, port)
        except UnicodeError as error:
            raise _no_host_name(url) from error
        except (OSError, TimeoutError) as error:
            raise Unavailable(f"host {host[:200]!r} cannot be resolved: {error or 'no answer'}") from error
        if not addresses:
            raise Unavailable(f"host {host[:200]!r} has no address")
        private = [one for one in addresses if not is_public(one)]
        if private and not self.allow_private:
            raise InvalidInput(
                f"webhook: {host[:200]!r} is at {private[0]}, which is not a public address: webhooks go to public "
                "ones, unless http.webhook_allow_private is set",
                field="webhook",
            )
        return parsed, addresses[0]

    def _parsed(self, url: str) -> httpx.URL:
        if len(url) > MAX_URL:
            raise InvalidInput(f"webhook: the URL has {len(url)} characters, {MAX_URL} at most", field="webhook")
        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, ValueError) as error:
            raise InvalidInput(f"webhook: {url[:80]!r} is no URL: {error}", field="webhook") from error
        schemes = ("https", "http") if self.allow_private else ("https",)
        if parsed.scheme not in schemes:
            raise InvalidInput(
                f"webhook: {url[:80]!r} must be an https URL with a host"
                + ("" if self.allow_private else " (plain http only with http.webhook_allow_private)"),
                field="webhook",
            )
        try:
            host = parsed.host
        except UnicodeError as error:  # idna's, which reads the name when it is asked for
            raise _no_host_name(url) from error
        if not host or not 0 < (parsed.port or _LAST_PORT) <= _LAST_PORT:
            raise InvalidInput(f"webhook: {url[:80]!r} names no host, or no port of one", field="webhook")
        if parsed.userinfo:
            raise InvalidInput(
                "webhook: the URL holds a user or password, which readers of the run would see: leave it out",
                field="webhook",
            )
        return parsed


def _no_host_name(url: str) -> InvalidInput:
    return InvalidInput(f"webhook: {url[:80]!r} names a host that no name can have", field="webhook")


def is_public(address: Address) -> bool:
    """Whether an address is reachable for everybody, also where it wraps one of IPv4."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(inner)
    if any(address in network for network in _SPECIAL if network.version == address.version):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved
