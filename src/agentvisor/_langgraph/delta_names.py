"""Which channels of this process's graphs are delta channels: what is written to them is state, and never dropped (S5).

A saver is not told. But LangGraph makes every delta channel of a graph out of its checkpoint before any task runs, asks
for their histories, and counts their updates in the metadata of checkpoints. A name that is one graph's delta channel
counts as one for all graphs of the process: to keep too much is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from langgraph.channels.delta import DeltaChannel  # pyright: ignore[reportMissingTypeStubs] - it has its types inline

COUNTERS = "counters_since_delta_snapshot"
"""LangGraph's own, in the metadata of checkpoints."""

_names: set[str] = set()
_Channel = DeltaChannel[Any]
_from_checkpoint = cast("Callable[[_Channel, object], _Channel]", DeltaChannel.from_checkpoint)  # pyright: ignore[reportUnknownMemberType]


def note(names: Iterable[str]) -> None:
    """These are delta channels."""
    _names.update(names)


def note_counted(metadata: Mapping[str, object]) -> None:
    """The channels that a checkpoint's metadata counts updates of are delta channels."""
    counters = metadata.get(COUNTERS)
    if isinstance(counters, Mapping):
        _names.update(cast("Mapping[str, object]", counters))


def delta_names() -> frozenset[str]:
    """The names seen so far."""
    return frozenset(_names)


def install_noting() -> None:
    """Note every delta channel that LangGraph makes from now on; calling it again changes nothing."""
    DeltaChannel.from_checkpoint = _noting


def _noting(self: _Channel, checkpoint: object) -> _Channel:
    if self.key:
        _names.add(self.key)
    return _from_checkpoint(self, checkpoint)
