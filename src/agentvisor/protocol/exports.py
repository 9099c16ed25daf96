"""A thread in a file: a magic line, then records, each with its length and checksum, and a hash of all at the end.

    file   = MAGIC record*
    record = length (4 bytes, big-endian) payload (an ExportRecord) CRC-32 of the payload (4 bytes, big-endian)

The first record is the header, the last says how many came before it, and the SHA-256 of all bytes before it. So a file
that was cut off, or in which a byte is another, is told from a whole one, with the place where it is wrong.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator

from google.protobuf.message import DecodeError

from agentvisor.core.errors import ERRORS, Internal, InvalidInput
from agentvisor.protocol.v1 import export_pb2

FORMAT = 1
"""Of the layout; a reader refuses a larger one."""
MAGIC = b"AGENTVISOR THREAD\n"
MEDIA_TYPE = "application/vnd.agentvisor.thread"
SUFFIX = ".agentvisor"
"""Of a file's name."""
PART_BYTES = 512 * 1024
"""Of a value's data in one record."""
MOST_RECORD_BYTES = 8 * 1024 * 1024

_NUMBER = struct.Struct(">I")
_FRAME = 2 * _NUMBER.size


class Writer:
    """Makes the bytes of a file, record by record."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._records = 0

    def begin(self, header: export_pb2.ExportHeader) -> bytes:
        """The file's first bytes."""
        self._hash.update(MAGIC)
        return MAGIC + self.record(export_pb2.ExportRecord(header=header))

    def record(self, record: export_pb2.ExportRecord) -> bytes:
        framed = _framed(record)
        self._hash.update(framed)
        self._records += 1
        return framed

    def end(self) -> bytes:
        """The file's last bytes."""
        said = export_pb2.ExportEnd(records=self._records, sha256=self._hash.digest())
        return _framed(export_pb2.ExportRecord(end=said))


def _framed(record: export_pb2.ExportRecord) -> bytes:
    payload = record.SerializeToString()
    return b"".join((_NUMBER.pack(len(payload)), payload, _NUMBER.pack(zlib.crc32(payload))))


def failed(code: str, message: str) -> bytes:
    """What a file ends with that could not be finished."""
    return _framed(export_pb2.ExportRecord(failed=export_pb2.ExportFailed(code=code, message=message)))


class Reader:
    """Takes the bytes of a file as they come, and gives its records, each checked.

    `InvalidInput` says what is wrong, and where. `close` when all have come: a file without its end is refused there.
    """

    def __init__(self, name: str = "the file") -> None:
        self._name = name
        self._buffer = bytearray()
        self._hash = hashlib.sha256()
        self._magic_seen = False
        self._ended = False
        self.position = 0
        """Of the record that is read, in bytes from the file's beginning."""
        self.records = 0
        """How many were read."""

    def feed(self, data: bytes) -> Iterator[export_pb2.ExportRecord]:
        """The records that are whole with these bytes. The error of the host that made the file, where it says one."""
        self._buffer += data
        if not self._magic_seen and not self._take_magic():
            return
        while (payload := self._payload()) is not None:
            yield self._checked(payload)

    def close(self) -> None:
        """Say that no more bytes come."""
        if not self._magic_seen:
            raise self._foreign()
        if not self._ended:
            raise self.wrong("it was cut off: its end is missing", "export the thread again")

    def wrong(self, what: str, way_out: str = "export the thread again, or copy the file again") -> InvalidInput:
        """What is wrong with the record that was read last."""
        return InvalidInput(
            f"{self._name} is damaged at byte {self.position} (record {self.records + 1}): {what}; {way_out}",
            position=str(self.position),
        )

    def _take_magic(self) -> bool:
        if not MAGIC.startswith(self._buffer[: len(MAGIC)]):
            raise self._foreign()
        if len(self._buffer) < len(MAGIC):
            return False
        self._pass(len(MAGIC))
        self._magic_seen = True
        return True

    def _foreign(self) -> InvalidInput:
        return InvalidInput(
            f"{self._name} is no exported thread: it does not begin with {MAGIC.decode().strip()!r}; give a file that "
            "`agentvisor threads export` has made",
            position="0",
        )

    def _payload(self) -> bytes | None:
        """The next record's bytes; None where they are not all here."""
        if self._ended and self._buffer:
            raise self.wrong(f"{len(self._buffer)} bytes or more follow its end")
        if len(self._buffer) < _NUMBER.size:
            return None
        (length,) = _NUMBER.unpack_from(self._buffer)
        if length > MOST_RECORD_BYTES:
            raise self.wrong(f"a record of {length} bytes, more than any has")
        if len(self._buffer) < length + _FRAME:
            return None
        payload = bytes(self._buffer[_NUMBER.size : _NUMBER.size + length])
        if _NUMBER.unpack_from(self._buffer, _NUMBER.size + length) != (zlib.crc32(payload),):
            raise self.wrong("the checksum does not match")
        return payload

    def _checked(self, payload: bytes) -> export_pb2.ExportRecord:
        try:
            record = export_pb2.ExportRecord.FromString(payload)
        except DecodeError as error:
            raise self.wrong("what it holds cannot be read") from error
        kind = record.WhichOneof("kind")
        if kind is None:
            raise self.wrong(
                "a record of a kind that is not known here", "it may come from a newer version: upgrade this one"
            )
        if (kind == "header") != (self.records == 0):
            raise self.wrong("its first record, and no other, must be the header")
        if kind == "header":
            self._check_version(record.header)
        if kind == "failed":
            raise ERRORS.get(record.failed.code, Internal)(
                f"the host could not finish the export: {record.failed.message}"
            )
        if kind == "end":
            self._check_end(record.end)
        self._pass(len(payload) + _FRAME)
        self.records += 1
        return record

    def _check_version(self, header: export_pb2.ExportHeader) -> None:
        if header.format > FORMAT:
            raise InvalidInput(
                f"{self._name} has the format {header.format}, made by AgentVisor {header.made_by[:40]}, and this "
                f"version reads up to {FORMAT}: upgrade this one"
            )

    def _check_end(self, end: export_pb2.ExportEnd) -> None:
        if end.records != self.records:
            raise self.wrong(f"{self.records} records came before its end, which says {end.records}")
        if end.sha256 != self._hash.digest():
            raise self.wrong("the hash of the whole file does not match")
        self._ended = True

    def _pass(self, length: int) -> None:
        self._hash.update(self._buffer[:length])
        del self._buffer[:length]
        self.position += length
