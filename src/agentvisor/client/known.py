"""What this process knows to be stored: the values that later differences may start from, and which need not be sent.

Only what the host has acknowledged, or has sent, comes in here: a put that failed, or whose outcome is unknown, leaves
no trace. Everything is bounded; what was forgotten is sent once more, and the host recognises it by its key.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from agentvisor.client.line import Line
from agentvisor.protocol.blobs import Stored

Version = str | int | float
"""A channel's version, as LangGraph counts it."""

MAX_VALUE_BYTES = 64 * 1024 * 1024
MAX_KEYS = 50_000
MAX_CHECKPOINTS = 1_000

K = TypeVar("K")
V = TypeVar("V")


class ChannelName(NamedTuple):
    """A channel of a thread's namespace."""

    thread: str
    namespace: str
    channel: str


class CheckpointName(NamedTuple):
    """A checkpoint of a thread's namespace."""

    thread: str
    namespace: str
    checkpoint_id: str


class Held(NamedTuple):
    """What a channel holds at a checkpoint; an empty key where it holds nothing."""

    version: Version
    key: bytes


class _Recent(Generic[K, V]):
    """A mapping that keeps what was used last, up to a sum of weights."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, weight: int = 1) -> None:
        self.drop(key)
        self._entries[key] = (value, weight)
        self._weight += weight
        while self._weight > self._most:
            _, (_, dropped) = self._entries.popitem(last=False)
            self._weight -= dropped

    def drop(self, key: K) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._weight -= entry[1]

    def items(self) -> list[tuple[K, V]]:
        """The newest first."""
        return [(key, value) for key, (value, _) in reversed(self._entries.items())]

    def drop_where(self, doomed: Callable[[K], bool]) -> None:
        for key in [key for key in self._entries if doomed(key)]:
            self.drop(key)


class Known:
    """Shared by all savers of a connection, and by their threads."""

    def __init__(self, max_value_bytes: int = MAX_VALUE_BYTES) -> None:
        self._lock = threading.Lock()
        self._lines: _Recent[ChannelName, Line] = _Recent(max_value_bytes)
        self._keys: _Recent[tuple[str, bytes], bool] = _Recent(MAX_KEYS)
        self._checkpoints: _Recent[CheckpointName, Mapping[str, Held]] = _Recent(MAX_CHECKPOINTS)

    def is_new(self, thread: str) -> bool:
        """Whether no checkpoint of the thread is known to be stored."""
        with self._lock:
            return not any(name.thread == thread for name, _ in self._checkpoints.items())

    def is_stored(self, thread: str, key: bytes) -> bool:
        """Whether the thread has the value of that key for sure."""
        with self._lock:
            return self._keys.get((thread, key)) is not None

    def set_stored(self, thread: str, key: bytes) -> None:
        """Note that the thread has the value of that key."""
        with self._lock:
            self._keys.put((thread, key), value=True)

    def line(self, name: ChannelName) -> Line | None:
        with self._lock:
            return self._lines.get(name)

    def namespace_values(self, thread: str, namespace: str) -> dict[bytes, Stored]:
        """All values of a namespace whose bytes are here, by key."""
        with self._lock:
            return {
                one.key: one
                for name, line in self._lines.items()
                if name.thread == thread and name.namespace == namespace
                for one in line.held.values()
            }

    def set_line(self, name: ChannelName, line: Line) -> None:
        """Note a channel's last version, which is stored."""
        with self._lock:
            self._keys.put((name.thread, line.last.key), value=True)
            self._lines.put(name, line, max(1, line.bytes_held()))

    def channels(self, name: CheckpointName) -> Mapping[str, Held] | None:
        """What every channel holds at a checkpoint."""
        with self._lock:
            return self._checkpoints.get(name)

    def holding(self, name: ChannelName, version: Version) -> bytes | None:
        """What any checkpoint of the namespace says that the channel holds at that version."""
        with self._lock:
            for checkpoint, channels in self._checkpoints.items():
                if (checkpoint.thread, checkpoint.namespace) == (name.thread, name.namespace):
                    held = channels.get(name.channel)
                    if held is not None and held.version == version:
                        return held.key
        return None

    def set_channels(self, name: CheckpointName, channels: Mapping[str, Held]) -> None:
        """Note what a stored checkpoint holds; the values of its keys are stored too."""
        with self._lock:
            self._checkpoints.put(name, channels)
            for held in channels.values():
                if held.key:
                    self._keys.put((name.thread, held.key), value=True)

    def forget(self, thread: str | None) -> None:
        """Know nothing of a thread any more; None: of any."""
        with self._lock:
            self._keys.drop_where(lambda key: thread in (None, key[0]))
            self._lines.drop_where(lambda name: thread in (None, name.thread))
            self._checkpoints.drop_where(lambda name: thread in (None, name.thread))
