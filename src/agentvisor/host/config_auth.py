"""Who may call a host, as it is configured: keys of owners, and tokens that somebody else signs."""

import ipaddress
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, Self, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, model_validator

from agentvisor.core.owners import owner
from agentvisor.host.config_section import Section

Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]  # fmt: skip
"""Of tokens' signatures. None that signs with a shared secret (HS256): whoever can check such a token can make one."""

_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_ORIGIN = re.compile(r"https?://[^/\s*?#@]+")


def _named(text: str) -> str:
    return owner(text)


def _hash(text: str) -> str:
    if not _HASH.fullmatch(text):
        raise ValueError("this is no hash of a key: `agentvisor key new --owner NAME` prints a key and its hash")
    return text


def _json_list(value: object) -> object:
    """A variable of the environment is JSON."""
    if not isinstance(value, str):
        return value
    try:
        return cast("object", json.loads(value))
    except ValueError as error:
        raise ValueError(f"this is not JSON: {error}") from error


def _comma_list(value: object) -> object:
    """A variable of the environment has commas."""
    return [one.strip() for one in value.split(",")] if isinstance(value, str) else value


def _origin(text: str) -> str:
    if text != "*" and not _ORIGIN.fullmatch(text):
        raise ValueError(f"{text!r} is no origin: write https://studio.example (scheme, name and port, no path), or *")
    return text.lower()


OwnerName = Annotated[str, AfterValidator(_named)]
Origins = Annotated[list[Annotated[str, AfterValidator(_origin)]], BeforeValidator(_comma_list)]


class ApiKeyConfig(Section):
    """A key of an owner; the key itself is nowhere but with them."""

    name: str = Field(min_length=1, max_length=100, description="Tells the key from others in logs.")
    hash: Annotated[str, AfterValidator(_hash)] = Field(
        repr=False, description="What `agentvisor key new` prints beside the key."
    )
    owner: OwnerName = Field(description="Whose threads it opens.")
    expires: AwareDatetime | None = Field(
        default=None, description="When it stops to count, as 2027-01-31T00:00:00Z; when not set, never."
    )

    def counts_at(self, now: datetime) -> bool:
        """Whether it has not expired."""
        return self.expires is None or now < self.expires


ApiKeys = Annotated[list[ApiKeyConfig], BeforeValidator(_json_list)]


class JwtConfig(Section):
    """Tokens (JWT) that an identity provider signs: whoever shows one acts for the owner that it names.

    With issuer, audience and one of jwks_url and jwks_file; a token must have the first two, and `exp`.
    """

    issuer: str | None = Field(default=None, min_length=1, description="The tokens' `iss`, exactly.")
    audience: str | None = Field(default=None, min_length=1, description="What their `aud` is, or has among others.")
    jwks_url: str | None = Field(
        default=None, description="Where the issuer's public keys are (JWKS), by https; http to this machine only."
    )
    jwks_file: Path | None = Field(default=None, description="Or a file of them, relative to this one.")
    owner_claim: str = Field(default="sub", min_length=1, description="The claim that names the owner.")
    algorithms: Annotated[list[Algorithm], BeforeValidator(_comma_list), Field(min_length=1)] = Field(
        default_factory=lambda: cast("list[Algorithm]", ["RS256", "ES256", "EdDSA"]),
        description="Signatures that count: RS, PS and ES with 256, 384 or 512, and EdDSA.",
    )

    @property
    def is_set(self) -> bool:
        """Whether tokens are taken."""
        return self.issuer is not None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        given = {name: getattr(self, name) for name in ("issuer", "audience", "jwks_url", "jwks_file")}
        there = " and ".join(f"http.jwt.{name}" for name, value in given.items() if value is not None)
        if self.jwks_url is not None and self.jwks_file is not None:
            raise ValueError(f"{there}: the issuer's keys are in one place, leave out jwks_url or jwks_file")
        if there and (None in (self.issuer, self.audience) or not (self.jwks_url or self.jwks_file)):
            raise ValueError(f"{there} alone: tokens need issuer, audience, and jwks_url or jwks_file")
        return self

    @model_validator(mode="after")
    def _keys_come_unchanged(self) -> Self:
        if self.jwks_url is None:
            return self
        url = urlsplit(self.jwks_url)
        is_local = url.scheme == "http" and is_loopback(url.hostname or "")
        if not url.hostname or (url.scheme != "https" and not is_local):
            raise ValueError(
                f"jwks_url {self.jwks_url!r} must begin with https://: whoever changes the keys on their way gets in"
            )
        return self


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens at an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
