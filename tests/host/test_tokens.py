"""A token counts when the issuer has signed it, for us, for now; nothing else does, or breaks anything."""

import base64
import json
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.host.issuer import (
    AUDIENCE,
    EC_KEY,
    ED_KEY,
    ISSUER,
    Publisher,
    claims,
    public,
    publishing,
    rsa_key,
    token,
)

from agentvisor.core.errors import Unavailable
from agentvisor.host.config_auth import JwtConfig
from agentvisor.host.signing_keys import FRESH_SECONDS, PAUSE_SECONDS, USABLE_SECONDS, SigningKeys, from_url, keys_in
from agentvisor.host.tokens import Tokens

NOW = datetime.now(UTC)
ALL = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]


def tokens(url: str, **settings: Any) -> Tokens:
    return Tokens(JwtConfig(issuer=ISSUER, audience=AUDIENCE, jwks_url=url, **settings))


@pytest.fixture
async def issuer() -> AsyncGenerator[Publisher]:
    with publishing(public(rsa_key(), "one"), public(EC_KEY, "two"), public(ED_KEY, "three")) as publisher:
        yield publisher


@pytest.mark.parametrize(
    "key, algorithm, key_id",
    [(rsa_key(), "RS256", "one"), (rsa_key(), "PS512", "one"), (EC_KEY, "ES256", "two"), (ED_KEY, "EdDSA", "three")],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_good_token_names_its_owner(issuer: Publisher, key: Any, algorithm: str, key_id: str) -> None:
    checks = tokens(issuer.url, algorithms=ALL)
    assert await checks.owner_of(token(key, algorithm, key_id)) == "anna"
    assert await checks.owner_of(token(key, algorithm, key_id, aud=["others", AUDIENCE])) == "anna"
    assert issuer.asked == 1, "its keys were read once"


def claims_json(**other: object) -> bytes:
    fixed = {"exp": 32503680000, "nbf": 0, "iat": 0}
    return json.dumps(claims(**fixed, **other)).encode()


def _part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _with_claims(good: str, data: bytes) -> str:
    header, _, signature = good.split(".")
    return f"{header}.{_part(data)}.{signature}"


def _with_header(good: str, header: object) -> str:
    return ".".join([_part(json.dumps(header).encode()), *good.split(".")[1:]])


def _hs256() -> str:
    """The classical trick: a host that takes the token's word for the algorithm checks it with the public key."""
    import hmac

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    secret = rsa_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = f"{_part(json.dumps({'alg': 'HS256', 'kid': 'one'}).encode())}.{_part(claims_json())}"
    return f"{signed}.{_part(hmac.digest(secret, signed.encode(), 'sha256'))}"


BAD: dict[str, Callable[[], str]] = {
    "of another issuer": lambda: token(rsa_key(), iss="https://evil.example/"),
    "of an issuer that is a prefix": lambda: token(rsa_key(), iss=ISSUER.rstrip("/")),
    "without an issuer": lambda: token(rsa_key(), iss=None),
    "for another audience": lambda: token(rsa_key(), aud="others"),
    "without an audience": lambda: token(rsa_key(), aud=None),
    "that has expired": lambda: token(rsa_key(), exp=NOW - timedelta(minutes=1)),
    "that never expires": lambda: token(rsa_key(), exp=None),
    "that expires in no time": lambda: token(rsa_key(), exp="never"),
    "that does not count yet": lambda: token(rsa_key(), nbf=NOW + timedelta(hours=1)),
    "from the future": lambda: token(rsa_key(), iat=NOW + timedelta(hours=1)),
    "of nobody": lambda: token(rsa_key(), sub=None),
    "of an empty name": lambda: token(rsa_key(), sub=""),
    "of a name with a line break": lambda: token(rsa_key(), sub="anna\nroot"),
    "signed by somebody else": lambda: token(rsa_key(1)),
    "signed by a key of another id": lambda: token(EC_KEY, "ES256", "one"),
    "with a signature of an algorithm that is not taken": lambda: token(rsa_key(), "RS384"),
    "signed by a short key": lambda: token(rsa_key(2, 1024), key_id="short"),
    "signed by a key that is not for signatures": lambda: token(rsa_key(3), key_id="encrypts"),
    "without a signature": lambda: jwt.encode(claims(), None, "none", headers={"kid": "one"}),  # type: ignore[arg-type]
    "whose signature was cut off": lambda: token(rsa_key()).rpartition(".")[0] + ".",
    "whose claims were changed": lambda: _with_claims(token(rsa_key()), claims_json(sub="root")),
    "signed with the public key as a secret": _hs256,
    "signed with a secret that the issuer published": lambda: jwt.encode(
        claims(), b"s" * 32, "HS256", headers={"kid": "secret"}
    ),
    "with a key of its own inside": lambda: jwt.encode(
        claims(), rsa_key(1), "RS256", headers={"kid": "one", "jwk": public(rsa_key(1), "one")}
    ),
    "with a critical header that nobody knows": lambda: jwt.encode(
        claims(), rsa_key(), "RS256", headers={"kid": "one", "crit": ["x"], "x": 1}
    ),
    "with a number for a key's id": lambda: _with_header(token(rsa_key()), {"alg": "RS256", "kid": 1}),
    "without a key's id, where there are several": lambda: token(rsa_key(), key_id=None),
    "of many brackets": lambda: _with_claims(token(rsa_key()), b"[" * 20_000),
}


@pytest.mark.filterwarnings("ignore:The RSA key is 1024 bits long")
@pytest.mark.parametrize("what", BAD)
async def test_a_token_does_not_count(issuer: Publisher, what: str) -> None:
    issuer.keys += [
        public(rsa_key(2, 1024), "short"),
        public(rsa_key(3), "encrypts", use="enc"),
        {"kty": "oct", "kid": "secret", "k": _part(b"s" * 32), "alg": "HS256"},
    ]
    assert await tokens(issuer.url).owner_of(BAD[what]()) is None


@given(
    st.one_of(st.text(), st.text(alphabet="abcXYZ019-_=.", min_size=5), st.from_regex(r"\A[\w-]+\.[\w-]+\.[\w-]*\Z"))
)
async def test_no_text_breaks_the_check(text: str) -> None:
    assert await tokens("http://127.0.0.1:1/").owner_of(text) is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from(["exp", "nbf", "iat", "aud", "iss", "sub", "jti"]),
)
async def test_no_claim_breaks_the_check(value: object, name: str) -> None:
    checks = Tokens(
        JwtConfig(issuer=ISSUER, audience=AUDIENCE, jwks_url="https://nobody.example"), SigningKeys(_rsa_alone)
    )
    said = json.loads(claims_json()) | {name: value}
    good = jwt.api_jws.encode(json.dumps(said).encode(), rsa_key(), "RS256", headers={"kid": "one"})
    named = await checks.owner_of(good)
    assert named in (None, "anna") or (name == "sub" and named == value)


async def _rsa_alone() -> bytes:
    return json.dumps({"keys": [public(rsa_key(), "one")]}).encode()


async def test_a_claim_of_ones_own_choice_names_the_owner(issuer: Publisher) -> None:
    checks = tokens(issuer.url, owner_claim="email")
    assert await checks.owner_of(token(rsa_key(), email="anna@example.com")) == "anna@example.com"
    assert await checks.owner_of(token(rsa_key())) is None


async def test_a_token_without_a_keys_id_is_checked_with_the_only_key() -> None:
    with publishing(public(rsa_key())) as issuer:
        assert await tokens(issuer.url).owner_of(token(rsa_key(), key_id=None)) == "anna"
        assert await tokens(issuer.url).owner_of(token(rsa_key(1), key_id=None)) is None


async def test_keys_can_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [public(rsa_key(), "one")]}))
    checks = Tokens(JwtConfig(issuer=ISSUER, audience=AUDIENCE, jwks_file=file))
    assert await checks.owner_of(token(rsa_key())) == "anna"


# --- the issuer's keys -----------------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_a_new_key_is_found_and_the_issuer_is_not_asked_all_the_time(issuer: Publisher) -> None:
    clock = Clock()
    keys = SigningKeys(from_url(issuer.url), clock=clock)
    assert await keys.get("one") is not None
    issuer.keys = [public(rsa_key(1), "new")]
    for _ in range(20):  # made-up ids, right after
        assert await keys.get("made up") is None
    assert issuer.asked == 1
    clock.now += PAUSE_SECONDS
    assert await keys.get("new") is not None
    assert await keys.get("one") is None, "one that was withdrawn counts no more"
    assert issuer.asked == 2


async def test_a_withdrawn_key_counts_no_more_after_a_while(issuer: Publisher) -> None:
    clock = Clock()
    keys = SigningKeys(from_url(issuer.url), clock=clock)
    assert await keys.get("one") is not None
    issuer.keys = [public(EC_KEY, "two")]
    clock.now += FRESH_SECONDS + 1
    assert await keys.get("one") is not None, "nobody waits for it"
    reading = keys._reading
    assert reading is not None
    await reading
    assert await keys.get("one") is None


BROKEN: dict[str, Callable[[Publisher], object]] = {
    "an error": lambda one: setattr(one, "status", 500),
    "a redirect": lambda one: (setattr(one, "status", 302), setattr(one, "location", one.url + "?")),
    "no JSON": lambda one: setattr(one, "body", b"<html>"),
    "no keys": lambda one: setattr(one, "body", b'{"keys": []}'),
    "a list": lambda one: setattr(one, "body", b"[]"),
    "too much": lambda one: setattr(one, "body", b'{"keys": [' + b" " * 2_000_000 + b"]}"),
    "many brackets": lambda one: setattr(one, "body", b"[" * 500_000),
    "secrets only": lambda one: setattr(one, "keys", [{"kty": "oct", "k": "c2VjcmV0", "kid": "one"}]),
}


@pytest.mark.parametrize("what", BROKEN)
async def test_where_the_keys_cannot_be_read_nobody_gets_in(issuer: Publisher, what: str) -> None:
    BROKEN[what](issuer)
    with pytest.raises(Unavailable, match="cannot be read"):
        await tokens(issuer.url).owner_of(token(rsa_key()))


async def test_what_is_known_counts_through_an_outage_but_not_for_ever(issuer: Publisher) -> None:
    clock = Clock()
    keys = SigningKeys(from_url(issuer.url), clock=clock)
    assert await keys.get("one") is not None
    issuer.status = 500
    for _ in range(10):
        clock.now += USABLE_SECONDS / 10 - 1
        assert await keys.get("one") is not None
        if keys._reading is not None:
            await keys._reading
    with pytest.raises(Unavailable, match="not known here"):
        await keys.get("new")
    clock.now += USABLE_SECONDS
    with pytest.raises(Unavailable, match="answered 500"):
        await keys.get("one")
    issuer.status = 200
    clock.now += PAUSE_SECONDS
    assert await keys.get("one") is not None, "the issuer is back"


async def test_many_who_come_at_once_ask_the_issuer_once(issuer: Publisher) -> None:
    import asyncio

    checks = tokens(issuer.url)
    named = await asyncio.gather(*(checks.owner_of(token(rsa_key(), sub=f"u{number}")) for number in range(20)))
    assert named == [f"u{number}" for number in range(20)]
    assert issuer.asked == 1


def test_a_key_that_this_version_cannot_read_is_left_out() -> None:
    listed = [{"kty": "NEW", "kid": "a"}, {"kty": "RSA", "kid": "b"}, 7, public(EC_KEY, "c")]
    assert list(keys_in(json.dumps({"keys": listed}).encode())) == ["c"]
