"""Saves of `agentvisor.checkpoint`: checkpoints in namespaces that no framework uses, one for each key.

So they share history, deltas, external storage and all limits with the checkpoints of graphs. LangGraph's namespaces
are `` for the root, and `node:task` joined by `|`: none begins with `|`.
"""

from __future__ import annotations

import re

from agentvisor.core.errors import InvalidInput
from agentvisor.core.ids import CheckpointId, Namespace
from agentvisor.core.keys import checked_key

RESERVED = "|"
"""Begins no namespace of a framework."""

_PREFIX = "|save|"

_TICKS = 60
"""Bits of a UUID's time, which are all that tells the order of two ids."""

_UUID6 = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-6[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")

_GREGORIAN = 0x01B21DD213814000
"""From 1582-10-15, where a UUID's time begins, to 1970, in 100 nanoseconds."""


def is_save(namespace: str) -> bool:
    """Whether the checkpoints of a namespace are saves."""
    return namespace.startswith(_PREFIX)


def namespace_of(key: str) -> Namespace:
    """Where the saves of a key are."""
    return Namespace(_PREFIX + key)


def key_of(namespace: str) -> str:
    return namespace.removeprefix(_PREFIX)


def check_save(namespace: Namespace, checkpoint_id: CheckpointId) -> None:
    """Refuse what no SDK of ours sends: such an id could stand before or after all others for ever."""
    checked_key(key_of(namespace), "the key of a save")
    if not _UUID6.fullmatch(checkpoint_id):
        raise InvalidInput(f"{checkpoint_id[:80]!r} is no id of a save: those are UUIDs of version 6", field="id")


def new_id(now_ns: int, chance: int, after: str) -> CheckpointId:
    """An id that is greater than `after` (empty: there is none), whatever the clock says.

    Args:
        now_ns: nanoseconds since the epoch.
        chance: 62 random bits.
        after: the thread's latest.
    """
    ticks = max(now_ns // 100 + _GREGORIAN, _ticks(after) + 1 if after else 0) & ((1 << _TICKS) - 1)
    head = f"{ticks >> 12:012x}"
    rest = f"{(0b10 << 62) | (chance & ((1 << 62) - 1)):016x}"
    return CheckpointId(f"{head[:8]}-{head[8:]}-6{ticks & 0xFFF:03x}-{rest[:4]}-{rest[4:]}")


def _ticks(checkpoint_id: str) -> int:
    digits = checkpoint_id.replace("-", "")
    return int(digits[:12] + digits[13:16], 16)
