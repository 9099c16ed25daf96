"""Numbers of an array as numpy lays them out, without numpy: nested lists, or a marker where the layout is another."""

from __future__ import annotations

import math
import struct

from agentvisor.core.errors import Corrupt
from agentvisor.host.render_msgpack import Plain

_FORMATS = {"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q"} | {
    "f2": "e",
    "f4": "f",
    "f8": "d",
}
MAX_DIMENSIONS = 32


def numbers(content: Plain) -> Plain:
    """(dtype, shape, order, bytes) as nested lists."""
    match content:
        case [str(dtype), list(lengths), str(order), bytes(data)]:
            shape = [one for one in lengths if isinstance(one, int) and one >= 0]
        case _:
            raise Corrupt("an array's extension does not hold dtype, shape, order and bytes")
    code = _FORMATS.get(dtype[1:])
    if code is None or len(shape) != len(lengths) or len(shape) > MAX_DIMENSIONS or (0 in shape and len(shape) > 1):
        return {"__type__": "array", "dtype": dtype, "shape": lengths, "size": len(data)}
    layout = f"{'>' if dtype[0] == '>' else '<'}{math.prod(shape)}{code}"
    if math.prod(shape) > len(data) or struct.calcsize(layout) != len(data):
        raise Corrupt(f"an array of {dtype} and shape {shape} cannot have {len(data)} bytes")
    flat: list[Plain] = list(struct.unpack(layout, data))
    strides = _strides(shape, fortran=order == "F")
    return _nested(flat, shape, strides, 0)


def _strides(shape: list[int], *, fortran: bool) -> list[int]:
    """How far apart two neighbours of each dimension are."""
    if fortran:
        return [math.prod(shape[:index]) for index in range(len(shape))]
    return [math.prod(shape[index + 1 :]) for index in range(len(shape))]


def _nested(flat: list[Plain], shape: list[int], strides: list[int], start: int) -> Plain:
    if not shape:
        return flat[start]
    return [_nested(flat, shape[1:], strides[1:], start + index * strides[0]) for index in range(shape[0])]
