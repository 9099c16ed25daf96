"""What can be configured of encryption: keys, which of them writes, and what of an index remains."""

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self, cast

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator

from agentvisor.host.config_auth import Origins
from agentvisor.host.config_section import Section

_BYTES = 32
_ID = "[A-Za-z0-9._-]{1,32}"
_HOW = "`agentvisor encryption-key new` makes one"


def decoded_key(text: str) -> bytes:
    """The bytes that a key's text stands for; ValueError where it is no key."""
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except ValueError as error:  # of base64, or what is not even ASCII: a file with a byte order mark
        raise ValueError(f"this is no key in base64: {_HOW}") from error
    if len(key) != _BYTES:
        raise ValueError(f"this key has {len(key)} bytes, and needs {_BYTES}: {_HOW}")
    return key


def _json_list(value: object) -> object:
    """A variable of the environment is JSON."""
    if not isinstance(value, str):
        return value
    try:
        return cast("object", json.loads(value))
    except ValueError:
        raise ValueError("this is not JSON") from None  # its text may hold keys


class EncryptionKeyConfig(Section):
    """A key, or where it is: one of key, file and env."""

    id: str = Field(pattern=rf"^{_ID}$", description="Its name, which stands beside all that is encrypted with it.")
    key: SecretStr | None = Field(default=None, repr=False, description="The key itself: 32 bytes in base64.")
    file: Path | None = Field(default=None, description="Or a file that holds it, relative to this one.")
    env: str | None = Field(
        default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="Or a variable of the host's environment."
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if sum(one is not None for one in (self.key, self.file, self.env)) != 1:
            raise ValueError(f"key {self.id!r} needs one of key, file and env")
        if self.key is not None:
            decoded_key(self.key.get_secret_value())
        return self

    def secret(self) -> bytes:
        """The key's bytes, once it was looked up."""
        if self.key is None:
            raise ValueError(f"key {self.id!r} was not looked up")
        return decoded_key(self.key.get_secret_value())


Keys = Annotated[list[EncryptionKeyConfig], BeforeValidator(_json_list)]


class EncryptionConfig(Section):
    """Encryption of all that Temporal and external storage see (docs/encryption.md)."""

    keys: Keys = Field(
        default_factory=list[EncryptionKeyConfig],
        repr=False,
        description="Keys, each `{id}` with one of `key`, `file` and `env`; as a variable, JSON. Without any, nothing "
        "is encrypted.",
    )
    key: str | None = Field(
        default=None, description="Id of the key that encrypts; the first when not set. The others only decrypt."
    )
    encrypts: bool = Field(
        default=True,
        description="With keys, encrypt what is written; false only decrypts, while hosts get their first keys one "
        "after the other.",
    )
    required: bool = Field(
        default=True,
        description="With keys, refuse what is not encrypted; false reads it, while threads of before are taken along.",
    )
    search: Literal["hashed", "off"] = Field(
        default="hashed",
        description="With keys, what Temporal's index has of metadata and owners: keyed hashes, or nothing.",
    )
    index_key: SecretStr | None = Field(
        default=None,
        description="Key of those hashes, 32 bytes in base64. It stays when the others change: a search finds only "
        "what was written with it.",
    )
    index_key_file: Path | None = Field(default=None, description="Or a file that holds it, relative to this one.")
    codec_key: SecretStr | None = Field(
        default=None,
        min_length=16,
        description="Key with which Temporal's UI may have payloads decrypted by this host; not set, nobody may.",
    )
    codec_origins: Origins = Field(
        default_factory=lambda: ["http://localhost:8233", "http://127.0.0.1:8233"],
        description="Origins of Temporal's UI, with commas between them.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        ids = [one.id for one in self.keys]
        if len(set(ids)) < len(ids):
            raise ValueError("two encryption.keys have the same id: give each its own, and never one twice")
        if self.key is not None and self.key not in ids:
            if not re.fullmatch(_ID, self.key):  # a key itself, perhaps: it is not shown
                raise ValueError("encryption.key is no id of a key: it names one of encryption.keys, where keys stand")
            raise ValueError(f"encryption.key {self.key!r} is none of encryption.keys: {', '.join(ids) or 'none'}")
        if not self.keys and self.required and "required" in self.model_fields_set:
            raise ValueError(f"encryption.required without encryption.keys: add a key, {_HOW}")
        if self.keys and self.required and not self.encrypts:
            raise ValueError(
                "encryption.encrypts is false, and encryption.required true: this host could not read what it writes. "
                "Set required to false as long as it encrypts nothing"
            )
        if self.codec_key is not None and not self.keys:
            raise ValueError("encryption.codec_key without encryption.keys: there is nothing to decrypt with")
        if self.index_key is not None and self.index_key_file is not None:
            raise ValueError("encryption.index_key and encryption.index_key_file: leave out one of them")
        if self.keys and self.search == "hashed" and self.index_key is None and self.index_key_file is None:
            raise ValueError(
                f"encryption.keys without encryption.index_key: add one ({_HOW}), by which metadata and owners are "
                "found, or set encryption.search to off"
            )
        return self

    @field_validator("index_key")
    @classmethod
    def _is_a_key(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None:
            decoded_key(key.get_secret_value())
        return key

    def index_secret(self) -> bytes:
        """The bytes of the index key."""
        if self.index_key is None:
            raise ValueError("there is no encryption.index_key")
        return decoded_key(self.index_key.get_secret_value())


def looked_up(config: EncryptionConfig, base: Path, environ: Mapping[str, str]) -> EncryptionConfig:
    """With every key read from where it is; ValueError, which shows none."""
    found: dict[str, object] = {"keys": [_looked_up(one, base, environ) for one in config.keys]}
    if config.index_key_file is not None:
        what = "encryption.index_key_file"
        found["index_key"] = _checked(_in_file(base / config.index_key_file.expanduser(), what), what)
    return config.model_copy(update=found)


def _looked_up(one: EncryptionKeyConfig, base: Path, environ: Mapping[str, str]) -> EncryptionKeyConfig:
    what = f"encryption.keys: key {one.id!r}"
    if one.file is not None:
        return EncryptionKeyConfig(id=one.id, key=_checked(_in_file(base / one.file.expanduser(), what), what))
    if one.env is None:
        return one
    text = environ.get(one.env, "")
    if not text:
        raise ValueError(f"{what}: environment variable {one.env} is not set")
    return EncryptionKeyConfig(id=one.id, key=_checked(text, f"{what}, environment variable {one.env}"))


def _in_file(file: Path, what: str) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{what}: {file} cannot be read: {error}") from error


def _checked(text: str, what: str) -> SecretStr:
    try:
        decoded_key(text)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error
    return SecretStr(text.strip())
