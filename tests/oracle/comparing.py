"""Two transcripts compared, and the differences that docs/compatibility.md lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parent / "differences.yaml"
_ABSENT = "<absent>"


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the servers answer differently."""

    place: str
    """scenario/step: path.within.the.outcome"""
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"{self.place}\n    ours:   {self.ours!r}\n    theirs: {self.theirs!r}"


@dataclass(slots=True)
class Listed:
    """Differences that there are for a reason."""

    reason: str
    """As docs/compatibility.md has it."""
    at: list[str]
    """Patterns of places; each has to be met by a difference."""
    met: set[str] = field(default_factory=set)

    def covers(self, place: str) -> bool:
        """Whether one of the patterns is met; all that are, are remembered."""
        met = {one for one in self.at if fnmatchcase(place, one)}
        self.met |= met
        return bool(met)


@dataclass(frozen=True, slots=True)
class Lists:
    """What the file says."""

    differences: list[Listed]
    not_built: dict[str, str]
    """Pattern of scenarios, or of scenario/step, to what is not there."""

    def is_not_built(self, step: str) -> bool:
        """Whether a step speaks of what is not there yet; all that follows from it is not compared."""
        return any(fnmatchcase(step, one) for one in self.not_built)


def lists() -> Lists:
    """The file, read."""
    given = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return Lists(
        [Listed(one["reason"].strip(), one["at"]) for one in given["differences"]], given.get("not_built") or {}
    )


def compare(scenario: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[Difference]:
    """All differences of a scenario's two transcripts."""
    found: list[Difference] = []
    for step in dict.fromkeys([*theirs, *ours]):
        place = f"{scenario}/{step}"
        if step not in ours or step not in theirs:
            found.append(Difference(f"{place}: ", ours.get(step, _ABSENT), theirs.get(step, _ABSENT)))
            continue
        found += (
            Difference(f"{place}: {'.'.join(path)}", one, other) for path, one, other in _walk(ours[step], theirs[step])
        )
    return found


def _walk(ours: Any, theirs: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in dict.fromkeys([*theirs, *ours]):
            yield from _walk(ours.get(key, _ABSENT), theirs.get(key, _ABSENT), (*path, key))
    elif isinstance(ours, list) and isinstance(theirs, list):
        names = [_names(ours), _names(theirs)]
        if names[0] != names[1]:
            yield path, *names
            return
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _walk(one, other, (*path, str(index)))
    elif type(ours) is not type(theirs) or ours != theirs:
        yield path, ours, theirs


def _names(values: Iterable[Any]) -> list[Any] | int:
    """The names of events, where these are events; else how many there are."""
    values = list(values)
    if values and all(isinstance(one, dict) and "event" in one for one in values):
        return [one["event"] for one in values]
    return len(values)
