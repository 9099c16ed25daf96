"""Two transcripts compared, and the differences that are listed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parent / "differences.yaml"
_ABSENT = "<absent>"
_NO_ROUTE = (404, 405, 422)


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the servers answer differently."""

    step: str
    """scenario/step"""
    path: str
    """Within the answer."""
    ours: Any
    theirs: Any

    @property
    def place(self) -> str:
        return f"{self.step}: {self.path}"

    def __str__(self) -> str:
        return f"{self.place}\n    ours:   {str(self.ours)[:300]}\n    theirs: {str(self.theirs)[:300]}"


@dataclass(slots=True)
class Listed:
    """Differences that there are for a reason."""

    reason: str
    """As docs/compatibility.md has it."""
    at: list[str]
    """Patterns of places; each has to be met by a difference."""
    sometimes: bool = False
    met: set[str] = field(default_factory=set)

    def covers(self, place: str) -> bool:
        """Whether one of the patterns is met; all that are, are remembered."""
        met = {one for one in self.at if fnmatchcase(place, one)}
        self.met |= met
        return bool(met)

    @property
    def unmet(self) -> list[str]:
        """What no difference has met."""
        return [] if self.sometimes else [one for one in self.at if one not in self.met]


@dataclass(slots=True)
class Missing:
    """What is not there yet."""

    steps: str
    """Pattern of scenario/step."""
    what: str
    met: bool = False

    def covers(self, step: str, ours: Any) -> bool:
        """Whether a step speaks of it; an answer as of a route that is not there is remembered."""
        covered = fnmatchcase(step, self.steps)
        if covered and isinstance(ours, dict) and ours.get("status") in _NO_ROUTE:
            self.met = True
        return covered


@dataclass(frozen=True, slots=True)
class Lists:
    """What the file says."""

    differences: list[Listed]
    missing: list[Missing]

    def unlisted(self, difference: Difference, answer: Any) -> bool:
        """Whether nothing explains it; `answer`: what our host said at that step."""
        explained = [one.covers(difference.place) for one in self.differences]
        missing = [one.covers(difference.step, answer) for one in self.missing]
        return not any([*explained, *missing])


def lists() -> Lists:
    """The file, read."""
    given = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return Lists(
        [Listed(one["reason"].strip(), one["at"], one.get("sometimes", False)) for one in given["differences"]],
        [Missing(steps, what) for steps, what in (given["not_built"] or {}).items()],
    )


def compare(scenario: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[Difference]:
    """All differences of a scenario's two transcripts."""
    found: list[Difference] = []
    for name in dict.fromkeys([*theirs, *ours]):
        step = f"{scenario}/{name}"
        if name not in ours or name not in theirs:
            found.append(Difference(step, "", ours.get(name, _ABSENT), theirs.get(name, _ABSENT)))
            continue
        found += (Difference(step, ".".join(path), *pair) for path, *pair in _walk(ours[name], theirs[name]))
    return found


def _walk(ours: Any, theirs: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in dict.fromkeys([*theirs, *ours]):
            yield from _walk(ours.get(key, _ABSENT), theirs.get(key, _ABSENT), (*path, key))
    elif isinstance(ours, list) and isinstance(theirs, list):
        if (one := _names(ours)) != (other := _names(theirs)):
            yield path, one, other
            return
        for index, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from _walk(*pair, (*path, str(index)))
    elif type(ours) is not type(theirs) or ours != theirs:
        yield path, ours, theirs


def _names(values: Iterable[Any]) -> list[Any] | int:
    """The names of events, where these are events; else how many there are."""
    values = list(values)
    if values and all(isinstance(one, dict) and "event" in one for one in values):
        return [one["event"] for one in values]
    return len(values)
