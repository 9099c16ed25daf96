"""A value as runs of an earlier value's bytes with literal bytes between them: what appending to a list comes to.

Serialised lists carry their length in front, in one to five bytes (msgpack: 9n, dc xx xx, dd xx xx xx xx; an extension
around them carries its own). So an append changes a few bytes at the front, keeps a long run, and adds a tail. The runs
are found by comparing memory, not by indexing it: microseconds for a value of which zstd would index every byte.
"""

from __future__ import annotations

from typing import NamedTuple

from agentvisor.core.errors import Corrupt
from agentvisor.protocol.compression import compress, decompress

MIN_RUN = 32
"""Bytes of a run that is worth its three numbers."""

MAX_RUNS = 16

PREFIX = 32 * 1024
"""Bytes at the end of the base that literals are compressed against: what comes next resembles what came last."""

_MAX_SHIFT = 10  # an extension's header (6 bytes) directly before a list's (5): the most that headers can grow
_RAW_LITERALS, _ZSTD_LITERALS = 0, 1
_COMPRESS_FROM = 64


class Run(NamedTuple):
    """`literal` bytes of the new value, then `length` bytes of the base from `start`."""

    literal: int
    start: int
    length: int


def find_runs(base: bytes, new: bytes) -> list[Run]:
    """Return the long runs that a few bisections show; cheap, and not always the best."""
    runs: list[Run] = []
    base_view = memoryview(base)
    at_base = at_new = literal_from = 0
    while len(runs) < MAX_RUNS - 1:
        length = _common_prefix(base_view, at_base, new, at_new)
        if length >= MIN_RUN:
            runs.append(Run(at_new - literal_from, at_base, length))
            literal_from = at_new + length
        at_base, at_new = at_base + length, at_new + length
        shift = _realign(base_view, at_base, new, at_new)
        if shift is None:
            break
        at_base, at_new = at_base + shift[0], at_new + shift[1]
    length = _common_suffix(base_view, new, min(len(base), len(new) - literal_from))
    if length >= MIN_RUN:
        runs.append(Run(len(new) - length - literal_from, len(base) - length, length))
    return runs


def _common_prefix(base: memoryview, at_base: int, new: bytes, at_new: int) -> int:
    """How many bytes from there on are equal. Compares about twice as many bytes as the result, by memcmp."""
    low, high = 0, min(len(base) - at_base, len(new) - at_new)
    if new.startswith(base[at_base : at_base + high], at_new):
        return high
    # Most mismatches come early; doubling finds them without touching the rest.
    step = MIN_RUN
    while low + step < high and new.startswith(base[at_base + low : at_base + low + step], at_new + low):
        low, step = low + step, step * 2
    high = min(high, low + step)
    while low < high:
        middle = (low + high + 1) // 2
        if new.startswith(base[at_base + low : at_base + middle], at_new + low):
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(base: memoryview, new: bytes, most: int) -> int:
    low, step = 0, MIN_RUN
    end_base, end_new = len(base), len(new)
    while low < most:
        more = min(step, most - low)
        if not new.startswith(base[end_base - low - more : end_base - low], end_new - low - more):
            break
        low, step = low + more, step * 2
    high = min(most, low + step)
    while low < high:
        middle = (low + high + 1) // 2
        if new.startswith(base[end_base - middle : end_base - low], end_new - middle):
            low = middle
        else:
            high = middle - 1
    return low


def _realign(base: memoryview, at_base: int, new: bytes, at_new: int) -> tuple[int, int] | None:
    """The smallest skips of headers after which the two agree again."""
    for total in range(1, 2 * _MAX_SHIFT + 1):
        for skip_base in range(max(0, total - _MAX_SHIFT), min(total, _MAX_SHIFT) + 1):
            skip_new = total - skip_base
            anchor = base[at_base + skip_base : at_base + skip_base + MIN_RUN]
            if len(anchor) == MIN_RUN and new.startswith(anchor, at_new + skip_new):
                return skip_base, skip_new
    return None


def literal_bytes(runs: list[Run], size: int) -> int:
    """Bytes of a value of `size` that no run covers."""
    return size - sum(run.length for run in runs)


def pack(runs: list[Run], base: bytes, new: bytes) -> bytes:
    """Write the runs and the literals; `unpack` reads them back."""
    literals = bytearray()
    out = bytearray()
    _put_number(out, len(runs))
    at = 0
    for run in runs:
        for number in run:
            _put_number(out, number)
        literals += new[at : at + run.literal]
        at += run.literal + run.length
    literals += new[at:]
    if len(literals) >= _COMPRESS_FROM:
        frame = compress(bytes(literals), level=3, prefix=base[-PREFIX:])
        if len(frame) < len(literals):
            return bytes(out) + bytes([_ZSTD_LITERALS]) + frame
    return bytes(out) + bytes([_RAW_LITERALS]) + bytes(literals)


def unpack(packed: bytes, base: bytes, size: int) -> bytes:
    """Rebuild a value of exactly `size` bytes; `Corrupt` where that is not what the runs and literals give."""
    runs, at = _read_runs(packed, len(base))
    count = literal_bytes(runs, size)
    if count < sum(run.literal for run in runs):
        raise Corrupt(f"the runs of the splice are longer than the {size} bytes that were declared")
    if at >= len(packed):
        raise Corrupt("the splice is cut off")
    how, rest = packed[at], packed[at + 1 :]
    if how == _ZSTD_LITERALS:
        rest = decompress(rest, size=count, prefix=base[-PREFIX:])
    elif how != _RAW_LITERALS or len(rest) != count:
        raise Corrupt("the splice's literals are not what was declared")
    parts: list[memoryview] = []
    literals, base_view, taken = memoryview(rest), memoryview(base), 0
    for run in runs:
        parts += (literals[taken : taken + run.literal], base_view[run.start : run.start + run.length])
        taken += run.literal
    return b"".join([*parts, literals[taken:]])


def _read_runs(packed: bytes, base_length: int) -> tuple[list[Run], int]:
    count, at = _get_number(packed, 0)
    if count > MAX_RUNS:
        raise Corrupt(f"a splice of {count} runs")
    runs: list[Run] = []
    for _ in range(count):
        literal, at = _get_number(packed, at)
        start, at = _get_number(packed, at)
        length, at = _get_number(packed, at)
        if start + length > base_length:
            raise Corrupt("a run of the splice ends after its base")
        runs.append(Run(literal, start, length))
    return runs, at


def _put_number(out: bytearray, number: int) -> None:
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _get_number(packed: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(packed) and shift < 63:
        byte = packed[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
    raise Corrupt("a number of the splice is cut off or too large")
