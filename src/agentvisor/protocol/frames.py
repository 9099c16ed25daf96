"""Messages on a byte stream: a length of 4 bytes, little endian, then that many bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from agentvisor.core.errors import InvalidInput, ValueTooLarge

MAX_FRAME = 8 * 1024 * 1024
"""Bytes that one message may have; the host's gRPC limit is the same."""

HEADER = struct.Struct("<I")


def frame(message: bytes) -> bytes:
    """Return the message with its length before it; `ValueTooLarge` past `MAX_FRAME`."""
    if len(message) > MAX_FRAME:
        raise ValueTooLarge(f"a message of {len(message)} bytes is over the limit of {MAX_FRAME}", limit=str(MAX_FRAME))
    return HEADER.pack(len(message)) + message


class Frames:
    """Cuts a stream into messages, however its bytes arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the messages that `data` completes, in order.

        Raises `InvalidInput` where a length is over `MAX_FRAME`: nothing after it can be read, so the stream must end.
        """
        self._buffer += data
        start = 0
        try:
            while len(self._buffer) - start >= HEADER.size:
                (length,) = HEADER.unpack_from(self._buffer, start)
                if length > MAX_FRAME:
                    raise InvalidInput(f"a frame of {length} bytes is over the limit of {MAX_FRAME}")
                end = start + HEADER.size + length
                if len(self._buffer) < end:
                    break
                message = bytes(memoryview(self._buffer)[start + HEADER.size : end])
                start = end
                yield message
        finally:
            del self._buffer[:start]

    @property
    def unfinished(self) -> bool:
        """Whether the stream so far ends inside a message."""
        return bool(self._buffer)
