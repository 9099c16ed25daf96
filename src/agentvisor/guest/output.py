"""What an agent prints: cut into lines, made harmless, and bounded for each run."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Awaitable, Callable

MAX_LINE = 8 * 1024
"""Bytes; a longer line is cut into several."""

READ_SIZE = 64 * 1024

Emit = Callable[[bool, list[str], int], Awaitable[None]]
"""Takes whether it is stderr, the lines, and how many bytes were dropped since the last call."""

# Tabs are harmless. Everything else of these could move a terminal's cursor, hide text or forge a line.
_HARMFUL = {"Cc", "Cf", "Zl", "Zp", "Cs"}


class Budget:
    """How many bytes a run may still print; its two streams share it."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._said = False
        self.dropped = 0

    def spend(self, size: int) -> bool:
        """Whether `size` more bytes may pass; otherwise they are counted as dropped, and so is all that follows."""
        if self.dropped or self._said or size > self._left:
            self.dropped += size
            return False
        self._left -= size
        return True

    def report(self, *, last: bool) -> int:
        """Return the bytes dropped since the last report: the first at once, the rest at the end."""
        if not self.dropped or (self._said and not last):
            return 0
        self._said = True
        dropped, self.dropped = self.dropped, 0
        return dropped


class Lines:
    """Cuts bytes into lines, however they arrive."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        lines = [line[at : at + MAX_LINE] for line in whole for at in range(0, max(len(line), 1), MAX_LINE)]
        while len(self._rest) >= MAX_LINE:
            lines.append(self._rest[:MAX_LINE])
            self._rest = self._rest[MAX_LINE:]
        return lines

    def end(self) -> list[bytes]:
        """Return what was left without a newline."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []


async def pump(reader: asyncio.StreamReader, *, stderr: bool, budget: Budget, emit: Emit) -> None:
    """Pass a stream's lines on until it ends."""
    lines = Lines()
    while data := await reader.read(READ_SIZE):
        await _pass_on(lines.feed(data), stderr=stderr, budget=budget, emit=emit, last=False)
    await _pass_on(lines.end(), stderr=stderr, budget=budget, emit=emit, last=True)


async def _pass_on(lines: list[bytes], *, stderr: bool, budget: Budget, emit: Emit, last: bool) -> None:
    passed = [escape(line) for line in lines if budget.spend(len(line) + 1)]
    dropped = budget.report(last=last)
    if passed or dropped:
        await emit(stderr, passed, dropped)


def escape(line: bytes) -> str:
    r"""Return the line as text that only shows: control characters become `\x1b`, `\u202e` and the like."""
    text = line.removesuffix(b"\r").decode("utf-8", "backslashreplace")
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character != "\t" and unicodedata.category(character) in _HARMFUL:
        return character.encode("unicode_escape").decode("ascii")
    return character
