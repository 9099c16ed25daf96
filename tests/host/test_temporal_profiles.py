"""Our settings beat Temporal's own value by value, and no key goes to an address that it was not configured for."""

from pathlib import Path

import pytest
from tests.support.secure_cluster import Authority

from agentvisor.host.config import ConfigError, load_config
from agentvisor.host.temporal_client_address import Connection, connection_of, is_named

PROFILES = """
[profile.default]
address = "default.example:7233"
[profile.cloud]
address = "cloud.example:7233"
namespace = "orders.acc1"
api_key = "canary-profile-key"
[profile.cloud.grpc_meta]
team = "desks"
"""


@pytest.fixture
def profiles(tmp_path: Path) -> str:
    file = tmp_path / "temporal.toml"
    file.write_text(PROFILES)
    return str(file)


def connection(folder: Path, text: str = "", **environ: str) -> Connection:
    (folder / "agentvisor.yaml").write_text(text)
    return connection_of(load_config(folder, environ=environ))


def test_without_any_word_it_is_temporals_own_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # no file of profiles
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    found = connection(tmp_path)
    assert found == Connection("localhost:7233", "default")
    assert not is_named(load_config(tmp_path, environ={}))


def test_temporals_variables_say_where_it_is_and_who_we_are(tmp_path: Path) -> None:
    found = connection(tmp_path, TEMPORAL_ADDRESS="a:1", TEMPORAL_NAMESPACE="n", TEMPORAL_API_KEY="k")
    assert (found.address, found.namespace, found.api_key) == ("a:1", "n", "k")
    assert found.tls is not None, "a key goes by TLS only"
    assert found.said_by["api_key"] == "environment variable TEMPORAL_API_KEY"


def test_a_profile_is_taken_whole_and_variables_beat_it(tmp_path: Path, profiles: str) -> None:
    found = connection(tmp_path, TEMPORAL_CONFIG_FILE=profiles, TEMPORAL_PROFILE="cloud", TEMPORAL_NAMESPACE="other")
    assert (found.address, found.namespace, found.api_key) == ("cloud.example:7233", "other", "canary-profile-key")
    assert found.metadata == {"team": "desks"}
    assert "profile cloud" in found.said_by["address"]


def test_our_settings_beat_both_value_by_value(tmp_path: Path, profiles: str) -> None:
    ours = f"temporal: {{config_file: {profiles}, profile: cloud, namespace: mine}}"
    found = connection(tmp_path, ours, TEMPORAL_NAMESPACE="other", TEMPORAL_PROFILE="default")
    assert (found.address, found.namespace, found.api_key) == ("cloud.example:7233", "mine", "canary-profile-key")
    other = "temporal: {config_file: temporal.toml, profile: cloud, address: 'mine:1', api_key: k}"
    found = connection(tmp_path, other)
    assert (found.address, found.namespace, found.api_key) == ("mine:1", "orders.acc1", "k")


def test_no_key_and_no_certificate_goes_to_an_address_of_ours_unless_it_is_ours(tmp_path: Path) -> None:
    theirs = {"TEMPORAL_API_KEY": "canary", "TEMPORAL_TLS": "true", "TEMPORAL_NAMESPACE": "n"}
    found = connection(tmp_path, "temporal: {address: 'localhost:7233'}", **theirs)
    assert found == Connection(
        "localhost:7233", "default", said_by={"address": "temporal.address"}, passed_over=tuple(sorted(theirs))
    )
    assert connection(tmp_path, "temporal: {address: 'a:1'}", AGENTVISOR_TEMPORAL_API_KEY="k").api_key == "k"


def test_a_key_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    found = connection(tmp_path, "temporal: {address: 'a:1', api_key_file: key}")
    assert found.api_key == "secret"
    for content in ("", "two words", "\n\n"):
        (tmp_path / "key").write_text(content)
        with pytest.raises(ConfigError, match=r"api_key_file: .* holds no API key"):
            connection(tmp_path, "temporal: {address: 'a:1', api_key_file: key}")


def test_tls_can_be_of_ours_or_of_theirs_and_be_switched_off(tmp_path: Path) -> None:
    ca = Authority(tmp_path / "ca").certificate
    ours = connection(tmp_path, f"temporal: {{address: 'a:1', tls: {{ca_file: {ca.relative_to(tmp_path)}}}}}").tls
    theirs = connection(
        tmp_path, TEMPORAL_ADDRESS="a:1", TEMPORAL_TLS_SERVER_CA_CERT_PATH=str(ca), TEMPORAL_TLS_SERVER_NAME="s"
    ).tls
    assert ours is not None
    assert theirs is not None
    assert ours.server_root_ca_cert == theirs.server_root_ca_cert == ca.read_bytes()
    assert theirs.domain == "s"
    off = "temporal: {tls: {enabled: false}}"
    assert connection(tmp_path, off, TEMPORAL_ADDRESS="a:1", TEMPORAL_TLS="true").tls is None
    assert connection(tmp_path, "temporal: {address: 'a:1', tls: {enabled: true}}").tls is not None


@pytest.mark.parametrize(
    "text, environ, says",
    [
        ("temporal: {profile: nope}", {}, "profile nope of .* cannot be used: .*not found"),
        ("temporal: {config_file: gone.toml}", {}, "temporal.config_file: there is no file .*gone.toml"),
        ("", {"TEMPORAL_CONFIG_FILE": "/gone.toml"}, "TEMPORAL_CONFIG_FILE: there is no file /gone.toml"),
        ("temporal: {address: 'a:1', tls: {ca_file: agentvisor.yaml}}", {}, "holds no certificate in PEM form"),
        ("temporal: {address: 'a:1', tls: {ca_file: gone.pem}}", {}, "temporal.tls.ca_file: .*gone.pem cannot be read"),
        ("temporal: {address: 'https://a:1'}", {}, "write host:port, without a scheme"),
        ("temporal: {address: a}", {}, "write host:port"),
        ("temporal: {tls: {cert_file: a}}", {}, "set temporal.tls.key_file too"),
        ("temporal: {api_key: a, api_key_file: b}", {}, "leave out one"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, environ: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        connection(tmp_path, text, **environ)


def test_a_profile_that_cannot_be_read_is_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text("[profile.default]\napi_key = canary\n")
    with pytest.raises(ConfigError, match=r"t\.toml .*line 2, column \d+, .*string") as refused:
        connection(tmp_path, "temporal: {config_file: t.toml}")
    assert "canary" not in str(refused.value)


def test_no_secret_is_in_a_representation(tmp_path: Path, profiles: str) -> None:
    found = connection(tmp_path, "temporal: {profile: cloud}", TEMPORAL_CONFIG_FILE=profiles, TEMPORAL_API_KEY="canary")
    assert found.api_key == "canary"
    assert "canary" not in repr(found)
    assert "canary" not in repr(load_config(tmp_path, environ={"TEMPORAL_API_KEY": "canary"}))
