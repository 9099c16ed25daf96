"""Keys are read from where they are, refused with what to do, and never shown."""

from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.encryption import INDEX, key, settings

from agentvisor.host.codec.client import keyring_of
from agentvisor.host.codec.keyring import Key
from agentvisor.host.config import Config, ConfigError, load_config


def loaded(folder: Path, encryption: Any, **environ: str) -> Config:
    (folder / "agentvisor.yaml").write_text(yaml.safe_dump({"encryption": encryption}))
    return load_config(folder, environ=environ)


def test_without_keys_nothing_is_encrypted(tmp_path: Path) -> None:
    assert keyring_of(load_config(tmp_path, environ={}).encryption).writing is None


def test_a_key_stands_in_the_file_in_one_beside_it_or_in_a_variable(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(key("b") + "\n")
    keys = [{"id": "a", "key": key("a")}, {"id": "b", "file": "secret"}, {"id": "c", "env": "THE_KEY"}]
    config = loaded(tmp_path, {"keys": keys, "index_key": INDEX, "key": "c"}, THE_KEY=key("c")).encryption
    assert [one.secret() for one in config.keys] == [
        settings_one.secret() for settings_one in loaded(tmp_path, settings("a", "b", "c")).encryption.keys
    ]
    writing = keyring_of(config).writing
    assert writing is not None
    assert writing.id == "c"


def test_the_index_key_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "index").write_text(INDEX)
    given = {"keys": [{"id": "a", "key": key("a")}], "index_key_file": "index"}
    assert (
        loaded(tmp_path, given).encryption.index_secret() == loaded(tmp_path, settings("a")).encryption.index_secret()
    )


def test_keys_come_by_variables_too(tmp_path: Path) -> None:
    environ = {
        "AGENTVISOR_ENCRYPTION_KEYS": f'[{{"id": "a", "key": "{key("a")}"}}]',
        "AGENTVISOR_ENCRYPTION_INDEX_KEY": INDEX,
    }
    assert load_config(tmp_path, environ=environ).encryption.keys[0].id == "a"


def test_keys_may_only_decrypt_while_hosts_get_them(tmp_path: Path) -> None:
    keyring = keyring_of(loaded(tmp_path, settings("a", "b", key="b", encrypts=False, required=False)).encryption)
    assert keyring.writing is None
    assert keyring.find("a", Key("a", b64decode(key("a"))).check, "it").id == "a"


@pytest.mark.parametrize(
    "encryption, says",
    [
        ({"keys": [{"id": "a", "key": "c2hvcnQ="}]}, "5 bytes, and needs 32"),
        ({"keys": [{"id": "a", "key": "no base64!"}]}, "no key in base64: `agentvisor encryption-key new`"),
        ({"keys": [{"id": "a"}]}, "'a' needs one of key, file and env"),
        ({"keys": [{"id": "a b", "key": key("a")}]}, "pattern"),
        (
            {"keys": [{"id": "a", "env": "NOT_SET"}], "index_key": INDEX},
            "'a': environment variable NOT_SET is not set",
        ),
        ({"keys": [{"id": "a", "file": "none"}], "index_key": INDEX}, "none cannot be read"),
        ({"keys": [{"id": "a", "key": key("a")}]}, "without encryption.index_key"),
        (settings("a", key="b"), "encryption.key 'b' is none of encryption.keys: a"),
        (settings("a", key=key("a")), "encryption.key is no id of a key"),
        ({"keys": [{"id": "a", "env": key("a")}]}, "pattern"),
        ([{"id": "a", "key": key("a")}], "encryption in"),
        ({"keys": [{"id": "a", "key": "\ufeff" + key("a")}]}, "no key in base64"),
        (settings("a", "a"), "same id"),
        ({"required": True}, "required without encryption.keys"),
        (settings("a", encrypts=False), "could not read what it writes. Set required to false"),
        ({"codec_key": "sixteen characters"}, "codec_key without encryption.keys"),
        (settings("a", codec_key="short"), "16"),
    ],
)
def test_what_cannot_be_is_refused_and_no_secret_is_shown(tmp_path: Path, encryption: Any, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, encryption)
    assert says in str(refused.value)
    assert key("a") not in str(refused.value)


def test_a_configuration_shows_no_key(tmp_path: Path) -> None:
    config = loaded(tmp_path, settings("a", codec_key="sixteen characters"))
    shown = repr(config) + str(config) + repr(config.encryption.keys[0]) + str(config.model_dump(mode="json"))
    raw = loaded(tmp_path, settings("a")).encryption.keys[0].secret()
    for secret in (key("a"), INDEX, "sixteen characters", b64encode(raw).decode(), repr(raw)):
        assert secret not in shown
