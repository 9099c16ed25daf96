"""The compose file as Compose reads it: with the values of an .env in the place of its variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import yaml
from tests.deploy.files import DEPLOY

COMPOSE = DEPLOY / "compose.yaml"
_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


class NotGivenError(Exception):
    """A variable that must be set is not: Compose starts nothing."""


def composed(given: Mapping[str, str]) -> dict[str, Any]:
    """The file with these variables."""

    def value(found: re.Match[str]) -> str:
        name, kind, rest = found.groups()
        if given.get(name):
            return given[name]
        if kind == "?":
            raise NotGivenError(f"{name}: {rest}")
        return rest or ""

    def with_values(node: object) -> object:
        match node:
            case str():
                return _VARIABLE.sub(value, node)
            case list():
                return [with_values(one) for one in cast("list[object]", node)]
            case dict():
                return {name: with_values(one) for name, one in cast("dict[str, object]", node).items()}
            case _:
                return node

    return cast("dict[str, Any]", with_values(yaml.safe_load(COMPOSE.read_text())))


def example() -> dict[str, str]:
    """The .env that comes with it, not filled in."""
    lines = (DEPLOY / ".env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def filled() -> dict[str, str]:
    """As somebody has filled it in who followed its text."""
    return {name: value or f"{number:064x}" for number, (name, value) in enumerate(example().items(), 1)}
