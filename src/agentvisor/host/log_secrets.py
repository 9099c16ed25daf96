"""Keeps out of the log what its readers may not see: secrets always, and what errors quote unless that is asked for."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from pydantic import BaseModel, SecretStr
from structlog.typing import EventDict, WrappedLogger

CONTENTS = frozenset({"text"})
"""Fields that say an error in its own words, which may quote inputs and values."""

_HIDDEN = "***"
_LEFT_OUT = "(not shown: log.contents)"
_SECRET_NAME = re.compile(
    r"authorization|api[-_]?key|operator[-_]?key|peer[-_]?key|private[-_]?key|secret|passw(or)?d|token|ticket|cookie"
    r"|credential",
    re.IGNORECASE,
)
_SHORTEST = 8
"""Characters of a value that is looked for wherever it stands: shorter ones are words."""
_PATTERNS = (
    (re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE), rf"\1 {_HIDDEN}"),
    (re.compile(r"(://)[^/\s@'\"]+@"), rf"\1{_HIDDEN}@"),
    (re.compile(r"\bav_[A-Za-z0-9_-]{20,}"), _HIDDEN),
    (
        re.compile(
            r"(\b(?:[a-z0-9]+[-_])*(?:authorization|api[-_]?key|password|secret|token|ticket)[\"']?\s*[:=]\s*[\"']?)"
            r"([^\s\"',;&)}\]]+)",
            re.IGNORECASE,
        ),
        rf"\1{_HIDDEN}",
    ),
)
_TRACEBACK = re.compile(r"(Exception Group )?Traceback \(most recent call last\):")
_BETWEEN = re.compile(r"(During handling of the above exception|The above exception was the direct cause)")
_FRAME = re.compile(r'\s+File "')
_MARGIN = re.compile(r"( *[|+] ?)?(.*)", re.DOTALL)
_RULE = re.compile(r"[-+ .\d]*")


class Secrets:
    """A processor of events that hides secrets: by the names of fields, by their looks, and those that are known."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        values = sorted({one for one in known if len(one) >= _SHORTEST}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, values))) if values else None

    def __call__(self, _logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
        return {name: self._shown(name, value) for name, value in event.items()}

    def _shown(self, name: str, value: object) -> object:
        if name != "event" and _SECRET_NAME.search(name):
            return _HIDDEN
        match value:
            case None | bool() | int() | float():
                return value
            case str():
                return self.hidden(value)
            case Mapping():
                known = cast("Mapping[object, object]", value)
                return {self.hidden(str(one)): self._shown(str(one), inner) for one, inner in known.items()}
            case list() | tuple() | set() | frozenset():
                return [self._shown("", one) for one in cast("Iterable[object]", value)]
            case _:
                return self.hidden(str(value))

    def hidden(self, text: str) -> str:
        """The text without its secrets."""
        if self._known is not None:
            text = self._known.sub(_HIDDEN, text)
        for pattern, instead in _PATTERNS:
            text = pattern.sub(instead, text)
        return text


def secrets_of(config: BaseModel) -> Iterator[str]:
    """Every value of a configuration that is a secret: by its type, or by the name that it has in a table."""
    for name in type(config).model_fields:
        yield from _secrets_in(name, getattr(config, name))


def _secrets_in(name: str, value: object) -> Iterator[str]:
    match value:
        case SecretStr():
            yield value.get_secret_value()
        case BaseModel():
            yield from secrets_of(value)
        case Mapping():
            for key, inner in cast("Mapping[object, object]", value).items():
                yield from _secrets_in(str(key), inner)
        case list() | tuple():
            for inner in cast("Iterable[object]", value):
                yield from _secrets_in(name, inner)
        case str() if _SECRET_NAME.search(name) or _is_key(name):
            yield value
        case _:
            pass


def _is_key(name: str) -> bool:
    """OPENAI_KEY, access_key_id: of variables and options, which have names of their own."""
    return "key" in name.lower().split("_")


def without_contents(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """A processor that leaves out what errors say in their own words; their types and places stay."""
    for name in CONTENTS & event.keys():
        del event[name]
    for name in ("traceback", "exception"):
        if isinstance(event.get(name), str):
            event[name] = without_messages(event[name])
    return event


def with_exception(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """A processor that makes a text of an exception; never with the values of variables."""
    given = event.pop("exc_info", None)
    match given:
        case BaseException():
            error: BaseException | None = given
        case (_, BaseException() as error, _):
            pass
        case None | False:
            return event
        case _:
            error = sys.exc_info()[1]
    if error is not None:
        event["exception"] = "".join(traceback.format_exception(error)).rstrip()
    return event


def without_messages(text: str) -> str:
    """A traceback with the classes of its exceptions, and without what these say."""
    shown: list[str] = []
    in_frames = None
    for line in text.splitlines():
        margin, rest = cast("re.Match[str]", _MARGIN.fullmatch(line)).groups(default="")
        if _TRACEBACK.search(rest) or (in_frames is None and _FRAME.match(line)):
            in_frames = True
            shown.append(line)
        elif _is_between(margin, rest) or (in_frames and (not rest or rest[0].isspace())):
            shown.append(line)
        elif in_frames:
            kind, colon, _ = rest.partition(":")
            shown.append(f"{margin}{kind}: {_LEFT_OUT}" if colon else f"{margin}{kind}")
            in_frames = False
    return "\n".join(shown)


def _is_between(margin: str, rest: str) -> bool:
    """Whether a line stands between the exceptions of a chain or a group."""
    return bool(_BETWEEN.match(rest) or (margin and _RULE.fullmatch(rest)))
