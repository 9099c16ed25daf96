"""Encrypts Temporal's payloads: each bound to its workflow, under a key whose id it names."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from copy import copy
from typing import ParamSpec, Self

import structlog
from cryptography.exceptions import InvalidTag
from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    ActivitySerializationContext,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
)

from agentvisor.core.errors import AgentVisorError, Corrupt
from agentvisor.host.codec.keyring import Key, Keyring
from agentvisor.host.codec.places import NOWHERE, Place, place_of
from agentvisor.host.codec.refused import Refused, why
from agentvisor.host.metrics import REFUSED_PAYLOADS
from agentvisor.protocol.compression import compress, decompress

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.encryption")

ENCODING = b"binary/agentvisor-encrypted"
REFUSED = b"binary/agentvisor-refused"
"""Of what takes the place of a damaged payload in a worker: nothing converts it to a value."""

_KEY_ID, _CHECK, _PLACE = "agentvisor-key", "agentvisor-key-check", "agentvisor-place"
_PURPOSE = b"agentvisor payload v1\0"
_NONCE = 12
_RAW, _ZSTD = b"\0", b"\1"
_SIZE = 4
_ID_SHOWN = 33
"""Of a key's id, which has 32 characters at most: the rest of a longer one fits no key, and belongs in no error."""
_LEVEL = 1
_COMPRESS_FROM = 400
"""Bytes below which compressing saves nothing worth its time."""
_OFF_LOOP = 256 * 1024
"""Bytes from which the event loop does not wait for it."""
_Arguments = ParamSpec("_Arguments")
_NOT_A_MESSAGE = b"\xffdamaged"
"""No message of ours, nor of anybody's: protobuf has no field that begins so."""


class SealingCodec(PayloadCodec, WithSerializationContext):
    """With keys, what is written is encrypted; without, it is not, and what is encrypted is refused by name.

    Decoding raises `Sealed` where a key is missing, or where plaintext comes that is required to be encrypted; and
    `Corrupt` for what was damaged, or belongs to another place. A worker's codec puts something in the place of a
    damaged payload that is no value, so that it costs one signal or update and not the thread (decision 0018).
    """

    def __init__(self, keyring: Keyring, *, required: bool, for_workers: bool = False) -> None:
        self._keyring = keyring
        self._required = required
        self._for_workers = for_workers
        self._place = NOWHERE
        self._of_activity = False

    @property
    def encrypts(self) -> bool:
        """Whether what is written is encrypted."""
        return self._keyring.writing is not None

    def with_context(self, context: SerializationContext) -> Self:
        """The same for one workflow."""
        bound = copy(self)
        bound._place = place_of(context)  # noqa: SLF001 - it is of this class
        bound._of_activity = isinstance(context, ActivitySerializationContext)  # noqa: SLF001
        return bound

    def in_workers(self) -> SealingCodec:
        """The same for a worker."""
        return SealingCodec(self._keyring, required=self._required, for_workers=True)

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        key = self._keyring.writing
        if key is None:
            return list(payloads)
        return [await _off_loop(one.ByteSize(), sealed, one, key, self._place) for one in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [await self._decoded(one) for one in payloads]

    async def _decoded(self, payload: Payload) -> Payload:
        try:
            return await self._opened(payload)
        except AgentVisorError as error:
            REFUSED_PAYLOADS.labels("temporal", why(error)).inc()
            if not self._for_workers or not isinstance(error, Corrupt):
                raise
            log.error("payload_refused", workflow=self._place.workflow_id, error=error.message)  # noqa: TRY400
            # Of an activity the workflow is told what it takes for a report that was lost.
            if self._of_activity:
                return Payload(metadata={"encoding": b"binary/plain"}, data=_NOT_A_MESSAGE)
            return Payload(metadata={"encoding": REFUSED})

    async def _opened(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != ENCODING:
            if self._required:
                raise Refused.PLAINTEXT.sealed(
                    f"{self._place} holds something that is not encrypted, and this host takes nothing that is not: "
                    "set encryption.required to false until `agentvisor migrate --all` has taken every thread along "
                    "(docs/encryption.md)"
                )
            return payload
        return await _off_loop(len(payload.data), opened, payload, self._keyring, self._place)


def sealed(payload: Payload, key: Key, place: Place) -> Payload:
    """A payload, encrypted for its place."""
    plain = payload.SerializeToString()
    body = _RAW + plain
    if len(plain) >= _COMPRESS_FROM:
        frame = compress(plain, level=_LEVEL)
        if len(frame) + _SIZE < len(plain):
            body = _ZSTD + len(plain).to_bytes(_SIZE, "big") + frame
    nonce, where = os.urandom(_NONCE), place.encoded()
    data = nonce + key.cipher(_PURPOSE + where).encrypt(nonce, body, _authenticated(key.id, where))
    metadata = {
        "encoding": ENCODING,
        _KEY_ID: key.id.encode(),
        _CHECK: key.check.hex().encode(),
        _PLACE: where,
    }
    return Payload(metadata=metadata, data=data)


def named_place(payload: Payload) -> Place:
    """Where an encrypted payload says that it belongs: true, once it decrypts. `Corrupt`."""
    return Place.decoded(payload.metadata.get(_PLACE, b""))


def key_of(payload: Payload) -> str | None:
    """The id of the key that a payload says it was encrypted with; None where it is not encrypted."""
    if payload.metadata.get("encoding") != ENCODING:
        return None
    return payload.metadata.get(_KEY_ID, b"")[:_ID_SHOWN].decode(errors="replace")


def opened(payload: Payload, keyring: Keyring, place: Place) -> Payload:
    """The payload that was encrypted for this place. `Sealed`, `Corrupt`."""
    says = named_place(payload)
    if says != place:
        raise Refused.MOVED.corrupt(f"{place} holds a payload that was written for {says}: somebody has moved it")
    key_id = key_of(payload) or ""
    try:
        check = bytes.fromhex(payload.metadata.get(_CHECK, b"").decode(errors="replace"))
    except ValueError:
        check = b""
    key = keyring.find(key_id, check, f"a payload of {says}")
    nonce, data = payload.data[:_NONCE], payload.data[_NONCE:]
    try:
        body = key.cipher(_PURPOSE + says.encoded()).decrypt(nonce, data, _authenticated(key.id, says.encoded()))
    except (InvalidTag, ValueError) as error:
        raise Refused.DAMAGED.corrupt(
            f"a payload of {says} ({len(payload.data)} bytes, key {key_id!r}) was damaged or cut: it does not decrypt"
        ) from error
    try:
        return Payload.FromString(_uncompressed(body))
    except DecodeError as error:
        raise Refused.DAMAGED.corrupt(f"a payload of {says} holds something else than a payload") from error


def _uncompressed(body: bytes) -> bytes:
    if body[:1] == _RAW:
        return body[1:]
    return decompress(body[1 + _SIZE :], size=int.from_bytes(body[1 : 1 + _SIZE], "big"))


def _authenticated(key_id: str, where: bytes) -> bytes:
    return _PURPOSE + key_id.encode() + b"\0" + where


async def _off_loop(
    size: int, work: Callable[_Arguments, Payload], *of: _Arguments.args, **more: _Arguments.kwargs
) -> Payload:
    return work(*of, **more) if size < _OFF_LOOP else await asyncio.to_thread(work, *of, **more)
