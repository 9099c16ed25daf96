"""Parts of threads by path: `values.messages[-1].content`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agentvisor.core.errors import InvalidInput
from agentvisor.host.render_typed import Json

ROOTS = ("config", "interrupts", "metadata", "values")
MOST_PATHS = 10
_LONGEST = 500
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_ROOT = re.compile(r"[a-z]+")
_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<index>-?[0-9]{1,9})\]")

Path = tuple[str | int, ...]
"""A field of the thread, then names in objects and places in lists."""


def paths_of(extract: Mapping[str, str], reserved: Sequence[str]) -> dict[str, Path]:
    """What is to be extracted under which name; `InvalidInput` says which path or name is none."""
    if len(extract) > MOST_PATHS:
        raise InvalidInput(f"extract: {len(extract)} paths, {MOST_PATHS} at most", field="extract")
    for name in extract:
        if not _NAME.fullmatch(name) or name in reserved:
            raise InvalidInput(
                f"extract: {name[:80]!r} is no name: use letters, digits and _, no field of threads", field="extract"
            )
    return {name: _path(text) for name, text in extract.items()}


def extracted(thread: Mapping[str, Json], paths: Mapping[str, Path]) -> dict[str, Json]:
    """What stands at the paths; null where nothing does."""
    return {name: _at(thread[path[0]], path[1:]) for name, path in paths.items() if isinstance(path[0], str)}


def _path(text: str) -> Path:
    root = _ROOT.match(text)
    if root is None or root[0] not in ROOTS or len(text) > _LONGEST:
        raise InvalidInput(
            f"extract: {text[:80]!r} must begin with one of {', '.join(ROOTS)}, and have {_LONGEST} characters at most",
            field="extract",
        )
    path: list[str | int] = [root[0]]
    place = root.end()
    while place < len(text):
        step = _STEP.match(text, place)
        if step is None:
            raise InvalidInput(
                f"extract: {text[:80]!r} is no path from its character {place + 1} on: write .name or [number]",
                field="extract",
            )
        path.append(step["name"] if step["index"] is None else int(step["index"]))
        place = step.end()
    return tuple(path)


def _at(value: Json, path: Sequence[str | int]) -> Json:
    for step in path:
        match value, step:
            case dict(), str():
                value = value.get(step)
            case list(), int() if -len(value) <= step < len(value):
                value = value[step]
            case _:
                return None
    return value
