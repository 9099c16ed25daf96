"""Which channels of this process's graphs are delta channels: what is written to them is state, and never dropped (S5).

A saver is not told. But LangGraph makes every delta channel of a graph out of its checkpoint before any task runs, asks
for their histories, and counts their updates in the metadata of checkpoints. A name that is one graph's delta channel
counts as one for all graphs of the process: to keep too much is safe.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Protocol, cast

COUNTERS = "counters_since_delta_snapshot"
"""LangGraph's own, in the metadata of checkpoints."""

_MODULE = "langgraph.channels.delta"

_names: set[str] = set()
_watched: set[object] = set()


class _Channel(Protocol):
    key: str


class _ChannelType(Protocol):
    from_checkpoint: Callable[[_Channel, object], _Channel]


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


def watch() -> None:
    """Note every delta channel that LangGraph makes from now on, where it has them; calling it again changes nothing.

    To be called in time by the saver: LangGraph asks it for a checkpoint before it makes channels out of that. So
    nothing of LangGraph need be imported here, which takes a second.
    """
    module = sys.modules.get(_MODULE)
    if module is None or module in _watched:
        return
    _watched.add(module)
    channel = cast("_ChannelType", module.DeltaChannel)
    made = channel.from_checkpoint

    @wraps(made)
    def noting(self: _Channel, checkpoint: object) -> _Channel:
        if self.key:
            _names.add(self.key)
        return made(self, checkpoint)

    channel.from_checkpoint = noting
