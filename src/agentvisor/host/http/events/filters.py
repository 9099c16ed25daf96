"""What a subscription lets through: channels, and parts of the tree of namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentvisor.core.errors import InvalidInput
from agentvisor.host.http.events.told import Told
from agentvisor.host.render_typed import Json

CHANNELS = (
    "values", "updates", "messages", "tools", "lifecycle", "input", "tasks", "checkpoints", "custom",
)  # fmt: skip
_CUSTOM = "custom:"
_REQUESTED = "input.requested"
_FIELDS = ("channels", "namespaces", "depth", "since")
_MOST_NAMESPACES = 1000


@dataclass(frozen=True, slots=True)
class Filter:
    """A subscription's wish."""

    channels: frozenset[str]
    namespaces: tuple[tuple[str, ...], ...] = ()
    """Prefixes, of which one has to fit; none: everything fits."""
    depth: int | None = None
    """How far below its prefix something may be."""
    since: int | None = None
    """Number of the last event that the client has."""

    def takes(self, told: Told) -> bool:
        """Whether the event is wanted."""
        return self._takes_channel(told) and self._takes_namespace(told.namespace)

    def _takes_channel(self, told: Told) -> bool:
        if told.method == "custom" and "custom" not in self.channels:
            name = told.data.get("name") if isinstance(told.data, dict) else None
            return isinstance(name, str) and f"{_CUSTOM}{name}" in self.channels
        return ("input" if told.method == _REQUESTED else told.method) in self.channels

    def _takes_namespace(self, namespace: Sequence[str]) -> bool:
        return not self.namespaces or any(
            is_below(namespace, prefix) and (self.depth is None or len(namespace) - len(prefix) <= self.depth)
            for prefix in self.namespaces
        )


def is_below(namespace: Sequence[str], prefix: Sequence[str]) -> bool:
    """Whether it begins so. A segment of the prefix without a task's id fits any task of its node."""
    return len(prefix) <= len(namespace) and all(
        wanted in (found, found.partition(":")[0]) for wanted, found in zip(prefix, namespace, strict=False)
    )


def filter_of(asked: Mapping[str, Json], *, also: Sequence[str] = ()) -> Filter:
    """The filter that a client asks for; `InvalidInput` names what cannot be one. `also`: further fields."""
    for name in asked:
        if name not in (*_FIELDS, *also):
            raise InvalidInput(f"{name}: unknown field; a subscription has {', '.join(_FIELDS)}", field=name)
    return Filter(
        channels=_channels(asked.get("channels")),
        namespaces=_namespaces(asked.get("namespaces")),
        depth=_whole(asked.get("depth"), "depth"),
        since=_whole(asked.get("since"), "since"),
    )


def _channels(asked: Json) -> frozenset[str]:
    if not isinstance(asked, list) or not asked:
        raise InvalidInput("channels is required and must be a non-empty array", field="channels")
    named = [one for one in asked if isinstance(one, str)]
    unknown = [repr(one)[:80] for one in asked if not (isinstance(one, str) and _is_channel(one))]
    if unknown:
        raise InvalidInput(
            f"channels: {', '.join(unknown[:5])} is none; there are {', '.join(CHANNELS)}, and custom:<name>",
            field="channels",
        )
    return frozenset(named)


def _is_channel(name: str) -> bool:
    return name in CHANNELS or (name.startswith(_CUSTOM) and len(name) > len(_CUSTOM))


def _namespaces(asked: Json) -> tuple[tuple[str, ...], ...]:
    if asked is None:
        return ()
    if not isinstance(asked, list) or len(asked) > _MOST_NAMESPACES:
        raise _no_namespaces()
    found = list[tuple[str, ...]]()
    for one in asked:
        segments = [each for each in one if isinstance(each, str)] if isinstance(one, list) else None
        if segments is None or not isinstance(one, list) or len(segments) != len(one):
            raise _no_namespaces()
        found.append(tuple(segments))
    return tuple(found)


def _no_namespaces() -> InvalidInput:
    return InvalidInput(
        f"namespaces must be an array of arrays of texts, {_MOST_NAMESPACES} at most", field="namespaces"
    )


def _whole(asked: Json, name: str) -> int | None:
    # In JSON true is no number; in Python it is 1, and a client would silently miss its first event.
    if asked is None or (isinstance(asked, int) and not isinstance(asked, bool) and asked >= 0):
        return asked
    raise InvalidInput(f"{name} must be a whole number of at least 0, not {repr(asked)[:80]}", field=name)
