"""Tokens (JWT) of owners: who signed one, for whom it is meant, whether it counts now, and whom it names."""

from __future__ import annotations

from typing import cast

import jwt

from agentvisor.core.errors import InvalidInput
from agentvisor.core.owners import Owner, owner
from agentvisor.host.config_auth import JwtConfig
from agentvisor.host.signing_keys import SigningKeys, fitting, from_file, from_url

_LEEWAY = 30
"""Seconds that clocks may differ."""


class Tokens:
    """Checks tokens of one issuer."""

    def __init__(self, config: JwtConfig, keys: SigningKeys | None = None) -> None:
        self._config = config
        self._keys = keys or _keys_of(config)

    async def owner_of(self, token: str) -> Owner | None:
        """Whom a token names; None where it does not count. `Unavailable` where that cannot be told for now."""
        try:
            header = cast("dict[str, object]", jwt.get_unverified_header(token))
        except Exception:  # noqa: BLE001 - whatever a made-up token makes the library raise, it does not count
            return None
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in self._config.algorithms or not isinstance(key_id, str | None):
            return None
        key = await self._keys.get(key_id)
        return None if key is None else self._checked(token, key, str(algorithm))

    async def close(self) -> None:
        await self._keys.close()

    def _checked(self, token: str, key: jwt.PyJWK, algorithm: str) -> Owner | None:
        claim = self._config.owner_claim
        try:
            fit = fitting(key, algorithm)
            if fit is None:
                return None
            claims = cast(
                "dict[str, object]",
                jwt.decode(
                    token,
                    fit,
                    algorithms=[algorithm],
                    audience=self._config.audience,
                    issuer=self._config.issuer,
                    leeway=_LEEWAY,
                    options={"require": ["exp", "iss", "aud", claim], "enforce_minimum_key_length": True},
                ),
            )
        except Exception:  # noqa: BLE001 - the same
            return None
        named = claims[claim]
        try:
            return owner(named) if isinstance(named, str) else None
        except InvalidInput:
            return None


def _keys_of(config: JwtConfig) -> SigningKeys:
    if config.jwks_file is not None:
        return SigningKeys(from_file(config.jwks_file))
    if config.jwks_url is None:
        raise ValueError("http.jwt has neither jwks_file nor jwks_url")
    return SigningKeys(from_url(config.jwks_url))
