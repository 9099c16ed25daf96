"""Reads JSON that is still being written: what is there so far, with everything that is open closed."""

from __future__ import annotations

import json
from dataclasses import dataclass

from agentvisor.host.http.json import decode
from agentvisor.host.render_typed import Json

_SPACE = " \t\r\n"
_STOP = ",:]}" + _SPACE
_LITERALS: dict[str, Json] = {"true": True, "false": False, "null": None}
_DEEPEST = 100


class NotJson(ValueError):
    """No continuation makes it JSON."""


def partial(text: str) -> Json:
    """The value so far; `NotJson` where there is none. A number or word counts once it is complete."""
    try:
        return decode(text.encode("utf-8", "backslashreplace"), "it")
    except ValueError:
        reader = _Partial(text)
        value = reader.value(0)
        if reader.skip_space() < len(text):
            raise NotJson("something follows the value") from None
        if isinstance(value, _Nothing):
            raise NotJson("no value has begun") from None
        return value


class _Nothing:
    """The text ended before the value said anything."""


_NOTHING = _Nothing()


@dataclass(slots=True)
class _Partial:
    text: str
    at: int = 0

    def skip_space(self) -> int:
        while self.at < len(self.text) and self.text[self.at] in _SPACE:
            self.at += 1
        return self.at

    def value(self, depth: int) -> Json | _Nothing:
        if depth > _DEEPEST:
            raise NotJson("nested too deeply")
        match self.text[self.skip_space() : self.at + 1]:
            case "":
                return _NOTHING
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"':
                return self._string()
            case _:
                return self._word()

    def _object(self, depth: int) -> Json:
        found: dict[str, Json] = {}
        self.at += 1
        while True:
            mark = self.text[self.skip_space() : self.at + 1]
            if mark in {"", "}"}:
                self.at += 1
                return found
            if mark == ",":
                self.at += 1
                continue
            if mark != '"':
                raise NotJson("a key must be a string")
            key = self._string()
            colon = self.text[self.skip_space() : self.at + 1]
            if colon not in ("", ":"):
                raise NotJson("a colon must follow a key")
            self.at += 1
            value = self.value(depth + 1)
            if not isinstance(value, _Nothing):
                found[key] = value

    def _array(self, depth: int) -> Json:
        found: list[Json] = []
        self.at += 1
        while True:
            mark = self.text[self.skip_space() : self.at + 1]
            if mark in {"", "]"}:
                self.at += 1
                return found
            if mark == ",":
                self.at += 1
                continue
            value = self.value(depth + 1)
            if not isinstance(value, _Nothing):
                found.append(value)

    def _string(self) -> str:
        start = self.at
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != '"':
            self.at += 2 if self.text[self.at] == "\\" else 1
        closed = self.at < len(self.text)
        self.at = min(self.at + 1, len(self.text))
        raw = self.text[start + 1 : self.at - 1] if closed else self.text[start + 1 :]
        return _unescaped(raw)

    def _word(self) -> Json | _Nothing:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in _STOP:
            self.at += 1
        word = self.text[start : self.at]
        if word in _LITERALS:
            return _LITERALS[word]
        if self.at == len(self.text):
            # Cut off within a word; half a number would be another number.
            return _NOTHING
        try:
            return decode(word.encode(), "it")
        except ValueError:
            raise NotJson("not a JSON value") from None


def _unescaped(raw: str) -> str:
    """A string's text; an escape that was cut off is left out, a raw line break is one."""
    for cut in range(min(6, len(raw)) + 1):
        try:
            return str(json.loads(f'"{raw[: len(raw) - cut]}"', strict=False))
        except ValueError:
            continue
    raise NotJson("a string has an escape that JSON does not have")
