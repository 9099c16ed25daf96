"""Encrypts objects of external storage, in pieces: a part of an object is read without the rest of it.

An object is a head and its pieces. Each object has a key of its own, made of a random number in the head and of its
path; each piece has its number, and whether it is the last, in its nonce. So none can be moved, left out or cut off.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from agentvisor.core.errors import Sealed
from agentvisor.host.codec.keyring import Keyring
from agentvisor.host.codec.refused import Refused

SUFFIX = ".encrypted"
"""Of paths. They stand in the thread's state: nobody can pass off something else for an encrypted object, or back."""

HEAD = 64
PIECE = 64 * 1024
_TAG = 16
_STORED = PIECE + _TAG
_MAGIC = b"AVO1"
_ID, _CHECK, _SALT = 32, 8, 16
_PURPOSE = b"agentvisor object v1\0"


@dataclass(frozen=True, slots=True)
class Span:
    """The pieces that hold a part of an object, and where they are in what is stored."""

    first: int
    start: int
    length: int


class ObjectCipher:
    """Encrypts and decrypts the objects of one Temporal namespace."""

    def __init__(self, keyring: Keyring, namespace: str) -> None:
        self._keyring = keyring
        self._namespace = namespace

    @property
    def encrypts(self) -> bool:
        """Whether what is written is encrypted."""
        return self._keyring.writing is not None

    def sealed(self, path: str, data: bytes) -> bytes:
        """What is stored of an object."""
        key = self._keyring.writing
        if key is None:
            raise Sealed(
                f"{path} cannot be encrypted: this host encrypts nothing: see encryption.keys and encryption.encrypts"
            )
        salt, named = os.urandom(_SALT), key.id.encode()
        head = (_MAGIC + bytes([len(named)]) + named.ljust(_ID, b"\0") + key.check + salt).ljust(HEAD, b"\0")
        cipher = AESGCM(key.derived(self._purpose(path), salt=salt))
        last = _last(len(data))
        pieces = [
            cipher.encrypt(_nonce(at, is_last=at == last), data[at * PIECE : (at + 1) * PIECE], head)
            for at in range(last + 1)
        ]
        return b"".join([head, *pieces])

    def opened(self, path: str, head: bytes, pieces: bytes, first: int, size: int) -> bytes:
        """The plain bytes of pieces, of an object of so many plain bytes in all. `Sealed`, `Corrupt`."""
        key_id = key_named(head)
        if key_id is None:
            raise Refused.DAMAGED.corrupt(f"object {path} is damaged: it does not begin as an encrypted one")
        at = 5 + _ID
        check, salt = head[at : at + _CHECK], head[at + _CHECK : at + _CHECK + _SALT]
        key = self._keyring.find(key_id, check, f"object {path}")
        cipher, last = AESGCM(key.derived(self._purpose(path), salt=salt)), _last(size)
        plain: list[bytes] = []
        for number, begin in enumerate(range(0, max(1, len(pieces)), _STORED), first):
            try:
                nonce = _nonce(number, is_last=number == last)
                plain.append(cipher.decrypt(nonce, pieces[begin : begin + _STORED], head))
            except (InvalidTag, ValueError) as error:
                raise Refused.DAMAGED.corrupt(
                    f"object {path} is damaged, cut, or was moved here: piece {number} does not decrypt"
                ) from error
        return b"".join(plain)

    def _purpose(self, path: str) -> bytes:
        return _PURPOSE + self._namespace.encode() + b"\0" + path.encode()


def key_named(head: bytes) -> str | None:
    """The id of the key that an object says it was encrypted with; None where it does not begin as an encrypted one."""
    if len(head) != HEAD or not head.startswith(_MAGIC):
        return None
    return head[5 : 5 + head[4]].decode(errors="replace")


def span(start: int, length: int, size: int) -> Span:
    """Which pieces hold these plain bytes of an object of `size`."""
    first, last = start // PIECE, max(start, start + length - 1) // PIECE
    begin = HEAD + first * _STORED
    return Span(first, begin, min(HEAD + (last + 1) * _STORED, stored_size(size)) - begin)


def stored_size(size: int) -> int:
    """Bytes that are stored of an object of `size`."""
    return HEAD + size + (_last(size) + 1) * _TAG


def _last(size: int) -> int:
    return max(0, size - 1) // PIECE


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(8, "big") + bytes([is_last]) + b"\0\0\0"
