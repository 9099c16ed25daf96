"""Who may call, in the configuration: what does not fit together is refused, with its place and the way out."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.host.test_config import load, refused

from agentvisor.host.api_keys import hash_of
from agentvisor.host.config_settings import SETTINGS

JWT = {"issuer": "https://i.example/", "audience": "a", "jwks_url": "https://i.example/keys"}


def key(**other: object) -> dict[str, object]:
    return {"name": "annas", "owner": "anna", "hash": hash_of("k"), **other}


@pytest.mark.parametrize("http", [{"api_keys": [key()]}, {"jwt": JWT}, {"operator_key": "k"}])
@pytest.mark.parametrize("section", ["http", "grpc"])
def test_any_way_to_show_who_one_is_lets_a_host_listen_beyond_loopback(
    tmp_path: Path, http: dict[str, Any], section: str
) -> None:
    content: dict[str, Any] = {"http": {**http, "peer_key": "p"}}
    content.setdefault(section, {})["host"] = "0.0.0.0"
    assert load(tmp_path, content).http.needs_key


@pytest.mark.parametrize("http", [{"api_keys": [key()]}, {"jwt": JWT}])
def test_a_host_that_others_reach_has_a_key_to_know_its_peers_by(tmp_path: Path, http: dict[str, Any]) -> None:
    assert "http.peer_key" in refused(tmp_path, {"http": {**http, "host": "0.0.0.0"}})
    # That of the operator will do.
    assert load(tmp_path, {"http": {**http, "host": "0.0.0.0", "operator_key": "o"}}).http.peer_key is None


@pytest.mark.parametrize("address", ["http://a:1", "a", "a:b", "a:1/x", "a b:1", "u@a:1", ""])
def test_what_is_no_address_of_a_peer_is_refused(tmp_path: Path, address: str) -> None:
    assert "host:port" in refused(tmp_path, {"http": {"peer_address": address}})


@pytest.mark.parametrize("http", [{}, {"api_keys": []}, {"jwt": {}}, {"jwt": {"owner_claim": "email"}}])
def test_nothing_that_lets_nobody_in_does(tmp_path: Path, http: dict[str, Any]) -> None:
    assert "needs a key" in refused(tmp_path, {"http": {**http, "host": "0.0.0.0"}})
    assert not load(tmp_path, {"http": http}).http.needs_key


@pytest.mark.parametrize(
    "http, says",
    [
        ({"api_keys": [key(hash="k")]}, "http.api_keys.0.hash: this is no hash of a key: `agentvisor key new"),
        ({"api_keys": [key(hash=hash_of("k").upper())]}, "this is no hash of a key"),
        ({"api_keys": [key(owner="")]}, "http.api_keys.0.owner: owner '' is not allowed"),
        ({"api_keys": [key(owner="a\nb")]}, "is not allowed"),
        ({"api_keys": [key(), key()]}, "two api_keys have the same name"),
        ({"api_keys": [key(), key(name="other")]}, "two api_keys have the same hash"),
        ({"api_keys": [key(expires="2030-01-01T00:00:00")]}, "http.api_keys.0.expires"),
        ({"api_keys": [key(scope="all")]}, "http.api_keys.0.scope"),
        ({"api_keys": {"annas": "k"}}, "http.api_keys"),
        (
            {"jwt": {"issuer": "https://i.example/"}},
            "http.jwt.issuer alone: tokens need issuer, audience, and jwks_url",
        ),
        ({"jwt": {**JWT, "jwks_file": "keys.json"}}, "leave out jwks_url or jwks_file"),
        ({"jwt": {**JWT, "jwks_url": "http://i.example/keys"}}, "must begin with https://"),
        ({"jwt": {**JWT, "jwks_url": "file:///etc/passwd"}}, "must begin with https://"),
        ({"jwt": {**JWT, "algorithms": ["RS256", "HS256"]}}, "http.jwt.algorithms.1"),
        ({"jwt": {**JWT, "algorithms": ["none"]}}, "http.jwt.algorithms.0"),
        ({"jwt": {**JWT, "algorithms": []}}, "http.jwt.algorithms"),
        ({"jwt": {**JWT, "isuer": "x"}}, "unknown key http.jwt.isuer"),
        ({"cors_origins": ["*"]}, "cors_origins * lets every page of the web drive this host"),
        ({"cors_origins": ["studio.example"]}, "'studio.example' is no origin"),
        ({"cors_origins": ["https://studio.example/path"]}, "is no origin"),
        ({"cors_origins": ["https://*.example"]}, "is no origin"),
        ({"read_timeout": 0}, "http.read_timeout"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, http: dict[str, Any], says: str) -> None:
    assert says in refused(tmp_path, {"http": http})


def test_lists_can_be_variables(tmp_path: Path) -> None:
    variables = {
        "AGENTVISOR_HTTP_API_KEYS": json.dumps([key(expires="2030-01-01T00:00:00Z")]),
        "AGENTVISOR_HTTP_CORS_ORIGINS": "https://a.example, https://b.example",
        "AGENTVISOR_HTTP_JWT_ISSUER": "https://i.example/",
        "AGENTVISOR_HTTP_JWT_AUDIENCE": "a",
        "AGENTVISOR_HTTP_JWT_JWKS_FILE": "keys.json",
        "AGENTVISOR_HTTP_JWT_ALGORITHMS": "ES256,EdDSA",
    }
    http = load(tmp_path, environ=variables).http
    assert [one.owner for one in http.api_keys] == ["anna"]
    assert http.cors_origins == ["https://a.example", "https://b.example"]
    assert http.jwt.algorithms == ["ES256", "EdDSA"]
    assert http.jwt.jwks_file == tmp_path / "keys.json"


def test_a_hash_is_in_no_representation(tmp_path: Path) -> None:
    config = load(tmp_path, {"http": {"api_keys": [key()], "operator_key": "canary"}})
    assert hash_of("k") not in repr(config)
    assert "canary" not in repr(config)


def test_the_table_of_settings_shows_lists(tmp_path: Path) -> None:
    del tmp_path
    assert (SETTINGS["http.jwt.algorithms"].unit, SETTINGS["http.jwt.algorithms"].default) == (
        "list",
        "RS256, ES256, EdDSA",
    )
    assert SETTINGS["http.api_keys"].default == "empty"
