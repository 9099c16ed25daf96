"""Filters of store items: equality and comparisons of members of their values, by LangGraph's rules."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

from agentvisor.core.errors import InvalidInput

MAX_CONDITIONS = 100
_MAX_KEY = 256

_ORDERINGS: Mapping[str, Callable[[float, float], bool]] = MappingProxyType(
    {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
)
_OPERATORS = ("$eq", "$ne", *_ORDERINGS)


def check_filter(given: Mapping[str, object]) -> None:
    """Refuse a filter that could not be applied to every value: `InvalidInput` names the member."""
    if len(given) > MAX_CONDITIONS:
        raise InvalidInput(f"the filter has {len(given)} conditions, and {MAX_CONDITIONS} are the most", field="filter")
    for key, condition in given.items():
        if not key or len(key) > _MAX_KEY or not key.isprintable():
            raise InvalidInput(
                f"filter key {key[:80]!r} is not allowed: 1 to {_MAX_KEY} printable characters", field="filter"
            )
        _check(key, condition)


def _check(place: str, condition: object) -> None:
    if isinstance(condition, list):
        for one in cast("list[object]", condition):
            _check(place, one)
    if not isinstance(condition, dict):
        return
    members = cast("Mapping[str, object]", condition)
    if not (operators := _operators(members)):
        for key, inner in members.items():
            _check(f"{place}.{key[:80]}", inner)
    for name, wanted in operators.items():
        if name not in _OPERATORS:
            raise InvalidInput(
                f"filter.{place}: unknown operator {name[:40]!r}: use {', '.join(_OPERATORS)}", field="filter"
            )
        if name in _ORDERINGS and _number(wanted) is None:
            raise InvalidInput(f"filter.{place}: {name} compares numbers, not {str(wanted)[:80]!r}", field="filter")


def passes(value: Mapping[str, object], given: Mapping[str, object]) -> bool:
    """Whether a value has all that the filter asks for; a member that it does not have is null."""
    return all(_holds(value.get(key), condition) for key, condition in given.items())


def _holds(found: object, condition: object) -> bool:
    operators = _operators(condition)
    if operators:
        return all(_compares(found, name, wanted) for name, wanted in operators.items())
    return _equal(found, condition)


def _equal(found: object, wanted: object) -> bool:
    """As LangGraph's own store: objects may hold more than is asked for, lists are compared member by member."""
    if isinstance(wanted, dict):
        members = cast("Mapping[str, object]", wanted)
        return isinstance(found, dict) and all(
            _holds(cast("Mapping[str, object]", found).get(key), one) for key, one in members.items()
        )
    if isinstance(wanted, list) and isinstance(found, list):
        here, there = cast("list[object]", found), cast("list[object]", wanted)
        return len(here) == len(there) and all(_holds(one, other) for one, other in zip(here, there, strict=True))
    return found == wanted


def _compares(found: object, name: str, wanted: object) -> bool:
    if name == "$eq":
        return found == wanted
    if name == "$ne":
        return found != wanted
    here, there = _number(found), _number(wanted)
    return here is not None and there is not None and _ORDERINGS[name](here, there)


def _number(value: object) -> float | None:
    """Numbers, and texts that are numbers."""
    if not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _operators(condition: object) -> Mapping[str, object]:
    """The comparisons that a condition is made of; none: it is a value to be equal to."""
    if not isinstance(condition, dict):
        return {}
    members = cast("Mapping[str, object]", condition)
    return members if any(key.startswith("$") for key in members) else {}
