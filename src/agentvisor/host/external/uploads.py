"""Data that comes in parts, kept in files until the message that names the upload: memory holds one part at a time."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

from agentvisor.core.errors import Corrupt, InvalidInput, ValueTooLarge
from agentvisor.protocol.v1 import store_pb2

PART_MOST = 1024 * 1024
"""Bytes of one part."""
_AT_A_TIME = 4
"""Values of the largest size whose parts may be here at a time; of more, those that waited longest are forgotten."""
_MOST = 1024
"""Uploads, however small."""


class _File:
    """A file without a name. It is closed when nothing refers to it: not under a thread that still writes."""

    def __init__(self) -> None:
        self._descriptor, name = tempfile.mkstemp(prefix="agentvisor-")
        Path(name).unlink()

    def __del__(self) -> None:
        os.close(self._descriptor)

    def write(self, data: bytes, offset: int) -> None:
        os.pwrite(self._descriptor, data, offset)

    def read(self, size: int) -> bytes:
        return os.pread(self._descriptor, size, 0)


@dataclass(slots=True)
class _Upload:
    total: int
    file: _File = field(default_factory=_File)
    parts: dict[int, int] = field(default_factory=dict[int, int])
    """Length by offset."""

    @property
    def is_complete(self) -> bool:
        return sum(self.parts.values()) == self.total


class Uploads:
    """The uploads of one attempt. The files have no names: they go with the process, however it ends."""

    def __init__(self, max_bytes: int, setting: str) -> None:
        self._max = max_bytes
        self._setting = setting
        self._uploads: OrderedDict[bytes, _Upload] = OrderedDict()

    async def take(self, part: store_pb2.PutPart) -> None:
        """Keep a part; the same one may come twice, and any may come first."""
        if part.total > self._max:
            raise ValueTooLarge(
                f"a value has {part.total} bytes as stored, the limit is {self._max} ({self._setting}): store a "
                "reference to large data instead, raise the limit, or configure storage.url",
                size=str(part.total),
                limit=str(self._max),
            )
        upload = self._uploads.get(part.upload)
        if upload is None:
            self._make_room(part.total)
            upload = self._uploads[part.upload] = _Upload(part.total)
        length = len(part.data)
        known = upload.parts.get(part.offset, length)
        if not 0 < length <= PART_MOST or part.total != upload.total or part.offset + length > upload.total:
            raise InvalidInput(f"a part of {length} bytes at {part.offset} is not one of {upload.total} bytes")
        if known != length:
            raise InvalidInput(f"two parts at {part.offset} differ in length")
        self._uploads.move_to_end(part.upload)
        await asyncio.to_thread(upload.file.write, part.data, part.offset)
        upload.parts[part.offset] = length

    async def collect(self, name: bytes, size: int) -> bytes:
        """All the data of an upload, which is forgotten; `Corrupt` where a part of it has not come."""
        upload = self._uploads.pop(name, None)
        if upload is None or not upload.is_complete or upload.total != size:
            raise Corrupt("a value was announced whose parts have not all come: it must be sent again")
        return await asyncio.to_thread(upload.file.read, size)

    def forget(self, name: bytes) -> None:
        """Drop what has come of an upload, if anything."""
        self._uploads.pop(name, None)

    def _make_room(self, size: int) -> None:
        there = sum(one.total for one in self._uploads.values())
        while self._uploads and (there + size > _AT_A_TIME * self._max or len(self._uploads) >= _MOST):
            _, oldest = self._uploads.popitem(last=False)
            there -= oldest.total
