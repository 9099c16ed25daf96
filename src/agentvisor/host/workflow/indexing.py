"""Terms of Temporal's index as this deployment writes them: the worker that runs a workflow knows how.

What a workflow does never depends on it, only what an upsert says: a history replays with another setting, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from temporalio import workflow

WRITTEN = "agentvisor.index_terms"
"""The worker's function: takes the attribute and its terms, gives those that are written."""


def indexed(attribute: str, terms: list[str]) -> list[str]:
    """The terms as they may stand in the index; unchanged where the worker says nothing."""
    functions = cast("object", workflow.extern_functions())  # pyright: ignore[reportUnknownMemberType] - Temporal's
    known = cast("Mapping[str, Callable[[str, list[str]], list[str]]]", functions)
    written = known.get(WRITTEN)
    return terms if written is None else written(attribute, terms)
