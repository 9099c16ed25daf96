"""Data that is too large for one message: sent in parts ahead of the message that names it, fetched in parts."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from agentvisor.client.operations import Operation
from agentvisor.core.errors import Corrupt
from agentvisor.protocol.v1 import store_pb2

PART = 512 * 1024
"""Bytes of one part: small enough that other messages are not held up for long."""

ALONE = 1024 * 1024
"""Bytes from which data goes in parts..."""

TOGETHER = 4 * 1024 * 1024
"""...and of all the data that one message may carry: what is over it goes in parts, too. A frame holds 8 MiB."""


@dataclass(frozen=True, slots=True)
class Upload:
    """Data on its way in parts."""

    data: bytes
    name: bytes = field(default_factory=lambda: os.urandom(16))

    def parts(self, thread: str) -> Operation[None]:
        """The requests that bring it."""
        for offset in range(0, len(self.data), PART):
            part = store_pb2.PutPart(
                upload=self.name, offset=offset, data=self.data[offset : offset + PART], total=len(self.data)
            )
            yield store_pb2.StoreRequest(thread_id=thread, put_part=part)


class Luggage:
    """Decides, for the values of one message, which it carries itself."""

    def __init__(self) -> None:
        self.uploads: list[Upload] = []
        self._carried = 0

    def carries(self, data: bytes) -> Upload | None:
        """None where the message carries the data; else the upload that it must name."""
        if len(data) <= ALONE and self._carried + len(data) <= TOGETHER:
            self._carried += len(data)
            return None
        upload = Upload(data)
        self.uploads.append(upload)
        return upload


def send(uploads: list[Upload], thread: str) -> Operation[None]:
    """Bring them, one part at a time."""
    for upload in uploads:
        yield from upload.parts(thread)


def fetch(thread: str, blob: store_pb2.Blob) -> Operation[None]:
    """Give a blob its data, where it came without."""
    if blob.data or not blob.stored_size:
        return
    parts, size = list[bytes](), 0
    while size < blob.stored_size:
        reply = yield store_pb2.StoreRequest(thread_id=thread, get_part=store_pb2.GetPart(key=blob.key, offset=size))
        if not reply.part.data:
            raise Corrupt(f"value {blob.key.hex()[:16]} ends after {size} of {blob.stored_size} bytes")
        parts.append(reply.part.data)
        size += len(reply.part.data)
    blob.data = b"".join(parts)
