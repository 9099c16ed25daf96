"""The keys of a host: one that encrypts, and all that decrypt. A key encrypts nothing itself: others are made of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from agentvisor.host.codec.refused import Refused

KEY_BYTES = 32
_KEPT = 2_000
"""Derived keys that are kept: one takes as long to make as to encrypt a kilobyte."""


class Key:
    """32 secret bytes under an id."""

    def __init__(self, key_id: str, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise ValueError(f"key {key_id!r} has {len(secret)} bytes: it needs {KEY_BYTES}")
        self.id = key_id
        self._secret = secret
        self._derived: OrderedDict[bytes, AESGCM] = OrderedDict()
        self._lock = Lock()
        self.check = self.derived(b"agentvisor check v1", length=8)
        """Tells it from another key under the same id, and nothing of the key."""

    def derived(self, purpose: bytes, *, salt: bytes | None = None, length: int = KEY_BYTES) -> bytes:
        """Bytes that only who has the key can know; others for each purpose."""
        return HKDF(SHA256(), length, salt, purpose).derive(self._secret)

    def cipher(self, purpose: bytes) -> AESGCM:
        """AES-256-GCM for one place, with a key of its own.

        A key may be used for about 2^32 random nonces: for one thread that is for ever, for a deployment it is months.
        """
        with self._lock:  # large payloads are encrypted in threads
            found = self._derived.get(purpose)
            if found is None:
                found = self._derived[purpose] = AESGCM(self.derived(purpose))
                if len(self._derived) > _KEPT:
                    self._derived.popitem(last=False)
            else:
                self._derived.move_to_end(purpose)
            return found

    def __repr__(self) -> str:
        return f"Key({self.id!r})"


class Keyring:
    """Keys by their ids."""

    def __init__(self, keys: Sequence[Key] = (), writes: str | None = None, *, encrypts: bool = True) -> None:
        """Args:
        keys: all that decrypt.
        writes: the id of the key that encrypts; the first when not given.
        encrypts: false: they only decrypt.
        """
        self._keys = {key.id: key for key in keys}
        writing = self._keys[writes] if writes is not None else next(iter(keys), None)
        self.writing = writing if encrypts else None
        """None: nothing is encrypted."""

    def find(self, key_id: str, check: bytes, what: str) -> Key:
        """The key that `what` was encrypted with; `Sealed` where it is not here."""
        key = self._keys.get(key_id)
        if key is None:
            raise Refused.UNKNOWN_KEY.sealed(
                f"{what} was encrypted with key {key_id!r}, which this host does not have: add it to encryption.keys",
                key_id=key_id,
            )
        if key.check != check:
            raise Refused.OTHER_KEY.sealed(
                f"{what} was encrypted with another key {key_id!r} than this host has under that id: give it the right "
                "one in encryption.keys",
                key_id=key_id,
            )
        return key
