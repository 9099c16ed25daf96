"""From a host's HTTP address to its gRPC address and its limits: what `GET /info` says."""

from __future__ import annotations

import urllib.error
from collections.abc import Mapping
from typing import NamedTuple, NoReturn, cast
from urllib.parse import urlsplit

from agentvisor.client.http import read
from agentvisor.core.errors import PermissionRefused, Unavailable

_ANY_ADDRESS = ("", "0.0.0.0", "::", "[::]")  # noqa: S104 (recognised, not bound)
_SECONDS = 5.0


class FoundHost(NamedTuple):
    """What a host says of itself; sizes in bytes, None where it does not say."""

    grpc: str
    max_value: int | None
    max_stored_value: int | None


def find_grpc(endpoint: str, api_key: str | None) -> str:
    """The address of the host's gRPC end."""
    return find_host(endpoint, api_key).grpc


def find_host(endpoint: str, api_key: str | None) -> FoundHost:
    """What the host's `/info` says; `Unavailable` that says what to start where none answers."""
    try:
        info = read(endpoint, api_key, "GET", "/info", seconds=_SECONDS)
    except urllib.error.HTTPError as error:
        _refuse(endpoint, error)
    said = cast("dict[str, object]", info) if isinstance(info, dict) else {}
    address = said.get("grpc")
    if not isinstance(address, str) or ":" not in address:
        raise Unavailable(f"what answers at {endpoint} is not an AgentVisor host, or one without gRPC")
    host, _, port = address.rpartition(":")
    if host in _ANY_ADDRESS:
        url = urlsplit(endpoint)
        name = url.hostname or ""
        address = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    return FoundHost(address, _size(said, "max_value"), _size(said, "max_stored_value"))


def _size(said: Mapping[str, object], name: str) -> int | None:
    limits = said.get("limits")
    value = cast("dict[str, object]", limits).get(name) if isinstance(limits, dict) else None
    return value if isinstance(value, int) else None


def _refuse(endpoint: str, error: urllib.error.HTTPError) -> NoReturn:
    with error:
        if error.code in {401, 403}:
            raise PermissionRefused(
                f"the AgentVisor host at {endpoint} refuses the key: set AGENTVISOR_API_KEY"
            ) from error
        raise Unavailable(f"what answers at {endpoint} is not an AgentVisor host: HTTP {error.code}") from error
