"""Configurations of encryption with keys that are made of their ids."""

from base64 import b64encode
from hashlib import sha256

from agentvisor.host.config_encryption import EncryptionConfig


def key(name: str) -> str:
    """A key's text; the same for the same name."""
    return b64encode(sha256(name.encode()).digest()).decode()


INDEX = b64encode(b"i" * 31 + b"j").decode()


def settings(*ids: str, **more: object) -> dict[str, object]:
    """The section of a configuration: the first key writes."""
    return {"keys": [{"id": one, "key": key(one)} for one in ids], "index_key": INDEX, **more}


def encryption(*ids: str, **more: object) -> EncryptionConfig:
    return EncryptionConfig.model_validate(settings(*ids, **more))
