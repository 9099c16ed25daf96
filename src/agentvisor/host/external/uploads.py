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
_FILE = 8
"""How many times the largest size the file may have, with what was forgotten and collected in between."""


class _File:
    """A file without a name. It is closed when nothing refers to it: not under a thread that still writes."""

    def __init__(self) -> None:
        self._descriptor, name = tempfile.mkstemp(prefix="agentvisor-")
        Path(name).unlink()

    def __del__(self) -> None:
        os.close(self._descriptor)

    def write(self, data: bytes, offset: int) -> None:
        os.pwrite(self._descriptor, data, offset)

    def read(self, size: int, offset: int) -> bytes:
        return os.pread(self._descriptor, size, offset)


@dataclass(slots=True)
class _Upload:
    file: _File
    begin: int
    """Where it is in the file."""
    total: int
    parts: dict[int, int] = field(default_factory=dict[int, int])
    """Length by offset."""

    @property
    def is_complete(self) -> bool:
        return sum(self.parts.values()) == self.total


class Uploads:
    """The uploads of one attempt, in one file that goes with the process, however it ends."""

    def __init__(self, max_bytes: int, setting: str) -> None:
        self._max = max_bytes
        self._setting = setting
        self._uploads: OrderedDict[bytes, _Upload] = OrderedDict()
        self._file: _File | None = None
        self._end = 0

    async def take(self, part: store_pb2.PutPart) -> None:
        """Keep a part; the same one may come twice, and any may come first."""
        if part.total > self._max:
            raise ValueTooLarge(
                f"a value has {part.total} bytes as stored, the limit is {self._max} ({self._setting}): store a "
                "reference to large data instead, raise the limit, or configure storage.url",
                size=str(part.total),
                limit=str(self._max),
            )
        length = len(part.data)
        if not 0 < length <= PART_MOST or part.offset + length > part.total:
            raise InvalidInput(f"a part of {length} bytes at {part.offset} is not one of {part.total} bytes")
        upload = self._uploads.get(part.upload)
        if upload is None:
            upload = self._uploads[part.upload] = self._begun(part.total)
        if part.total != upload.total or upload.parts.get(part.offset, length) != length:
            raise InvalidInput(f"a part of {length} bytes at {part.offset} contradicts one that came before")
        self._uploads.move_to_end(part.upload)
        await asyncio.to_thread(upload.file.write, part.data, upload.begin + part.offset)
        upload.parts[part.offset] = length

    async def collect(self, name: bytes, size: int) -> bytes:
        """All the data of an upload, which is forgotten; `Corrupt` where a part of it has not come."""
        upload = self._uploads.get(name)
        self.forget(name)
        if upload is None or not upload.is_complete or upload.total != size:
            raise Corrupt("a value was announced whose parts have not all come: it must be sent again")
        return await asyncio.to_thread(upload.file.read, size, upload.begin)

    def forget(self, name: bytes) -> None:
        """Drop what has come of an upload, if anything."""
        self._uploads.pop(name, None)
        if not self._uploads:
            self._file, self._end = None, 0

    def _begun(self, size: int) -> _Upload:
        if self._end + size > _FILE * self._max:
            self._uploads.clear()
            self._file, self._end = None, 0
        there = sum(one.total for one in self._uploads.values())
        while self._uploads and there + size > _AT_A_TIME * self._max:
            _, oldest = self._uploads.popitem(last=False)
            there -= oldest.total
        if self._file is None:
            self._file = _File()
        begin, self._end = self._end, self._end + size
        return _Upload(self._file, begin, size)
