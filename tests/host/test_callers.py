"""Who calls, by what they show: the operator, an owner, or nobody; and no key is ever written down."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog.testing
from hypothesis import given
from hypothesis import strategies as st
from tests.host.issuer import AUDIENCE, ISSUER, public, publishing, rsa_key, token

from agentvisor.core.errors import Unavailable
from agentvisor.core.owners import EVERYONE
from agentvisor.host.api_keys import hash_of, new_key
from agentvisor.host.callers import Callers
from agentvisor.host.config_http import HttpConfig

ANNAS, BERTS = new_key(), new_key()


def key(name: str, shown: str, **more: object) -> dict[str, object]:
    return {"name": name, "owner": name, "hash": hash_of(shown), **more}


def callers(**http: Any) -> Callers:
    return Callers(HttpConfig.model_validate(http))


async def test_each_key_is_its_owners() -> None:
    these = callers(operator_key="the operator's", api_keys=[key("anna", ANNAS), key("bert", BERTS)])
    assert [await these.owner_of(one, "c") for one in (ANNAS, BERTS, "the operator's")] == ["anna", "bert", EVERYONE]


@given(st.text())
async def test_nothing_else_opens(text: str) -> None:
    these = callers(operator_key="the operator's", api_keys=[key("anna", ANNAS)])
    assert await these.owner_of(text, "c") is None


@pytest.mark.parametrize(
    "shown",
    [None, "", " ", ANNAS[:-1], ANNAS + "x", ANNAS.upper(), hash_of(ANNAS)],
    ids=["none", "empty", "blank", "shorter", "longer", "capitals", "its hash"],
)
async def test_what_is_nearly_a_key_opens_nothing(shown: str | None) -> None:
    assert await callers(api_keys=[key("anna", ANNAS)]).owner_of(shown, "c") is None


async def test_without_any_key_whoever_gets_here_is_the_operator() -> None:
    assert await callers().owner_of(None, "c") == EVERYONE


async def test_owners_alone_leave_no_way_in_without_a_key() -> None:
    these = callers(api_keys=[key("anna", ANNAS)])
    assert these.must_show
    assert await these.owner_of(None, "c") is None


async def test_a_key_ends_when_it_expires() -> None:
    ends = datetime(2030, 1, 1, tzinfo=UTC)
    now = [ends - timedelta(seconds=1)]
    these = Callers(
        HttpConfig.model_validate({"api_keys": [key("anna", ANNAS, expires="2030-01-01T00:00:00Z")]}),
        now=lambda: now[0],
    )
    assert await these.owner_of(ANNAS, "c") == "anna"
    now[0] = ends
    assert await these.owner_of(ANNAS, "c") is None


async def test_keys_and_tokens_work_side_by_side() -> None:
    with publishing(public(rsa_key(), "one")) as issuer:
        jwt = {"issuer": ISSUER, "audience": AUDIENCE, "jwks_url": issuer.url}
        these = callers(operator_key="op.with.dots", api_keys=[key("anna", ANNAS)], jwt=jwt)
        assert await these.owner_of(token(rsa_key(), sub="carl"), "c") == "carl"
        assert await these.owner_of(ANNAS, "c") == "anna"
        assert await these.owner_of("op.with.dots", "c") == EVERYONE
        issuer.status = 500
        assert await callers(api_keys=[key("anna", ANNAS)], jwt=jwt).owner_of(ANNAS, "c") == "anna", "of no concern"
        with pytest.raises(Unavailable):
            await callers(jwt=jwt).owner_of(token(rsa_key()), "c")


async def test_refusals_are_counted_in_the_log_and_no_key_is_written_down() -> None:
    clock = [0.0]
    these = Callers(HttpConfig.model_validate({"api_keys": [key("anna", ANNAS)]}), clock=lambda: clock[0])
    secret = "canary-of-a-key"
    with structlog.testing.capture_logs() as lines:
        for number in range(1000):
            clock[0] = number / 50
            await these.owner_of(secret, "10.0.0.9")
    assert [line["event"] for line in lines] == ["callers_refused"] * 2, "20 seconds, a line in ten"
    assert [line["number"] for line in lines] == [1, 500]
    assert lines[0]["client"] == "10.0.0.9"
    assert secret not in str(lines)


def test_a_key_is_random_and_known_for_one() -> None:
    assert len({new_key() for _ in range(1000)}) == 1000
    assert re.fullmatch(r"av_[A-Za-z0-9_-]{43}", new_key())
