"""Reads msgpack into plain values, strictly, and hands extensions to the caller: no object is ever built."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from agentvisor.core.errors import Corrupt

Plain = None | bool | int | float | str | bytes | list["Plain"] | dict[str, "Plain"]
"""What reading can yield; JSON but for bytes and for numbers that are not finite."""

MAX_DEPTH = 100
"""Levels of nesting, extensions counted. A level costs up to five calls, and Python allows a thousand in all."""


class TooDeep(Corrupt):
    """Nested deeper than what is shown."""


ReadExtension = Callable[["Reader", int], Plain]
"""Turns an extension into a plain value: gets a reader over its content, and its code."""

KeyText = Callable[[Plain], str]
"""Names a map's key that is no string."""

_FLOAT32, _FLOAT64 = struct.Struct(">f"), struct.Struct(">d")


@dataclass(slots=True)
class Reader:
    """One pass over a buffer; content of extensions is read in place, not copied."""

    buffer: memoryview
    read_extension: ReadExtension
    key_text: KeyText
    position: int = 0
    depth: int = 0
    end: int = field(init=False)

    def __post_init__(self) -> None:
        self.end = len(self.buffer)

    def whole(self) -> Plain:
        """The one value that fills the buffer; `Corrupt` where there is less or more."""
        value = self.value()
        if self.position != self.end:
            raise Corrupt(f"{self.end - self.position} bytes follow the value")
        return value

    def value(self) -> Plain:
        """The next value."""
        code = self._number(1)
        if code < 0x80:
            return code
        if code < 0x90:
            return self._map(code & 0x0F)
        if code < 0xA0:
            return self._array(code & 0x0F)
        if code < 0xC0:
            return self._text(code & 0x1F)
        if code >= 0xE0:
            return code - 0x100
        return self._long(code)

    def _long(self, code: int) -> Plain:
        match code:
            case 0xC0:
                return None
            case 0xC2 | 0xC3:
                return code == 0xC3
            case 0xC4 | 0xC5 | 0xC6:
                return bytes(self._take(self._number(1 << (code - 0xC4))))
            case 0xC7 | 0xC8 | 0xC9:
                return self._extension(self._number(1 << (code - 0xC7)))
            case 0xCA:
                return float(_FLOAT32.unpack(self._take(4))[0])
            case 0xCB:
                return float(_FLOAT64.unpack(self._take(8))[0])
            case 0xCC | 0xCD | 0xCE | 0xCF:
                return self._number(1 << (code - 0xCC))
            case 0xD0 | 0xD1 | 0xD2 | 0xD3:
                return int.from_bytes(self._take(1 << (code - 0xD0)), "big", signed=True)
            case 0xD4 | 0xD5 | 0xD6 | 0xD7 | 0xD8:
                return self._extension(1 << (code - 0xD4))
            case 0xD9 | 0xDA | 0xDB:
                return self._text(self._number(1 << (code - 0xD9)))
            case 0xDC | 0xDD:
                return self._array(self._number(2 << (code - 0xDC)))
            case 0xDE | 0xDF:
                return self._map(self._number(2 << (code - 0xDE)))
            case _:
                raise Corrupt(f"byte {code:#x} at {self.position - 1} starts no msgpack value")

    def _take(self, length: int) -> memoryview:
        start, self.position = self.position, self.position + length
        if self.position > self.end:
            raise Corrupt(f"cut off: {length} bytes expected at {start}, {self.end - start} are there")
        return self.buffer[start : self.position]

    def _number(self, length: int) -> int:
        return int.from_bytes(self._take(length), "big")

    def _text(self, length: int) -> str:
        try:
            return str(self._take(length), "utf-8")
        except UnicodeDecodeError as error:
            raise Corrupt(f"text before {self.position} is not UTF-8: {error.reason}") from None

    def _array(self, length: int) -> Plain:
        # Every element takes a byte at least: a length that cannot be true is refused before anything is allocated.
        self._check(length)
        self.depth += 1
        values = [self.value() for _ in range(length)]
        self.depth -= 1
        return values

    def _map(self, length: int) -> Plain:
        self._check(2 * length)
        self.depth += 1
        values: dict[str, Plain] = {}
        for _ in range(length):
            key = self.value()
            name = key if isinstance(key, str) else self.key_text(key)
            if name in values:
                # 1 and "1" are two keys in Python and one in JSON: none may vanish.
                name = f"{name} ({type(key).__name__})"
                if isinstance(key, str) or name in values:
                    raise Corrupt(f"key {name[:80]!r} comes twice")
            values[name] = self.value()
        self.depth -= 1
        return values

    def _check(self, least: int) -> None:
        if self.position + least > self.end:
            raise Corrupt(f"cut off: {least} bytes at least expected at {self.position}")
        if self.depth >= MAX_DEPTH:
            raise TooDeep(f"nested deeper than {MAX_DEPTH} levels")

    def _extension(self, length: int) -> Plain:
        code = int.from_bytes(self._take(1), "big", signed=True)
        self._check(0)
        inner = Reader(self._take(length), self.read_extension, self.key_text, depth=self.depth + 1)
        return self.read_extension(inner, code)
