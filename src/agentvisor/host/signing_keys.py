"""The public keys of who signs tokens (JWKS): read when they are needed, kept for a while, read again for a new one.

Where they cannot be read, nobody gets in by what was known an hour ago: `Unavailable`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import cast

import httpx
import jwt
import structlog

from agentvisor.core.errors import Unavailable
from agentvisor.host.http.json import decode

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.auth")

Load = Callable[[], Awaitable[bytes]]

FRESH_SECONDS = 300.0
"""After which they are read again, beside the work: a key that was withdrawn stops to count."""
USABLE_SECONDS = 3600.0
"""After which they no longer count, where reading them again has failed all the time."""
PAUSE_SECONDS = 10.0
"""Between two readings: tokens with made-up key ids must not make this host knock at the issuer's door all the time."""
_TIMEOUT = 5.0
_MOST_BYTES = 1024 * 1024
_KINDS = ("RSA", "EC", "OKP")
"""Of public keys. Never `oct`: whoever reads such a key can sign with it."""


class SigningKeys:
    """The keys by their ids."""

    def __init__(self, load: Load, *, clock: Callable[[], float] = monotonic) -> None:
        self._load = load
        self._clock = clock
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._read_at: float | None = None
        self._tried_at: float | None = None
        self._failed = ""
        self._reading: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """End a reading that is under way."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def get(self, key_id: str | None) -> jwt.PyJWK | None:
        """The key of that id; without an id, the only one there is. None: there is none. `Unavailable`."""
        if self._age(self._read_at) > USABLE_SECONDS:
            await self._read_again()
            if self._age(self._read_at) > USABLE_SECONDS:
                raise Unavailable(f"the keys that tokens are signed with cannot be read: {self._failed}")
        elif self._age(self._read_at) > FRESH_SECONDS:
            self._begin_reading()
        key = self._known(key_id)
        if key is None:
            await self._read_again()
            key = self._known(key_id)
            if key is None and self._failed:
                raise Unavailable(f"the token's key is not known here, and the keys cannot be read: {self._failed}")
        return key

    def _known(self, key_id: str | None) -> jwt.PyJWK | None:
        if key_id is not None:
            return self._keys.get(key_id)
        return next(iter(self._keys.values())) if len(self._keys) == 1 else None

    def _age(self, then: float | None) -> float:
        return float("inf") if then is None else self._clock() - then

    async def _read_again(self) -> None:
        """At most once in a pause; who comes meanwhile waits for the same reading."""
        reading = self._begin_reading()
        if reading is not None:
            await asyncio.shield(reading)

    def _begin_reading(self) -> asyncio.Task[None] | None:
        if self._reading is None and self._age(self._tried_at) >= PAUSE_SECONDS:
            self._tried_at = self._clock()
            self._reading = asyncio.create_task(self._read(), name="signing keys")
        return self._reading

    async def _read(self) -> None:
        try:
            self._keys = keys_in(await self._load())
        except (ValueError, OSError, httpx.HTTPError) as error:
            self._failed = f"{type(error).__name__}: {error}"[:300]
            log.warning("signing_keys_not_read", error=self._failed)
        else:
            self._failed, self._read_at = "", self._clock()
        finally:
            self._reading = None


def keys_in(data: bytes) -> Mapping[str, jwt.PyJWK]:
    """The public signing keys of a JWKS, less those that this version cannot read; ValueError where there are none."""
    listed = decode(data, "the key set")
    entries = listed.get("keys") if isinstance(listed, dict) else None
    if not isinstance(entries, list):
        raise ValueError('the key set is no object with a list "keys"')
    found: dict[str, jwt.PyJWK] = {}
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or entry.get("kty") not in _KINDS or entry.get("use", "sig") != "sig":
            continue
        try:
            key = jwt.PyJWK(cast("dict[str, object]", entry))
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            continue
        found[key.key_id if isinstance(key.key_id, str) else f"#{number}"] = key
    if not found:
        raise ValueError("the key set has no public key for signatures")
    return found


def fitting(key: jwt.PyJWK, algorithm: str) -> jwt.PyJWK | None:
    """The key as one for signatures of this kind; None where it is no such key.

    An RSA key that does not say for which it is may be used with each of RSA's; any other is for one alone.
    """
    if key.algorithm_name == algorithm:
        return key
    said = cast("dict[str, object]", key._jwk_data)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - has no other
    if key.key_type != "RSA" or "alg" in said or algorithm[:2] not in ("RS", "PS"):
        return None
    return jwt.PyJWK(said, algorithm=algorithm)


def from_file(path: Path) -> Load:
    """Keys that an administrator puts there."""

    async def load() -> bytes:
        return await asyncio.to_thread(path.read_bytes)

    return load


def from_url(url: str) -> Load:
    """Keys that the issuer publishes. No other address counts: a redirect is an error."""

    async def load() -> bytes:
        async with (
            asyncio.timeout(_TIMEOUT),
            httpx.AsyncClient(timeout=_TIMEOUT, follow_redirects=False) as client,
            client.stream("GET", url, headers={"accept": "application/json"}) as response,
        ):
            if response.status_code != 200:
                raise ValueError(f"{url} answered {response.status_code}")
            data = b""
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > _MOST_BYTES:
                    raise ValueError(f"{url} answered more than {_MOST_BYTES} bytes")
            return data

    return load
