"""Looks at why something does not answer, bounded: one at a time for each, none again so soon, and few in all.

Thousands may wait for one thread, or for a Temporal that has come back slow: each of their calls wants to know why.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from agentvisor.core.errors import AgentVisorError

_REMEMBERED = 1_000
"""Of what was looked at last."""


@dataclass(slots=True)
class _Going:
    task: asyncio.Task[AgentVisorError | None]
    waiting: int = 0


class Looks:
    """Of the callers that look at the same thing at a time, one does."""

    def __init__(self, *, most: int = 8, fresh: float = 2.0) -> None:
        """Args:
        most: looks at a time, at whatever they are.
        fresh: seconds for which what was seen still counts.
        """
        self._most = most
        self._fresh = fresh
        self._going: dict[str, _Going] = {}
        self._seen: OrderedDict[str, tuple[float, AgentVisorError | None]] = OrderedDict()

    async def at(self, name: str, look: Callable[[], Coroutine[object, object, None]]) -> None:
        """Raise what a look at it raises, or raised a moment ago.

        Where too many others are being looked at, this says nothing: whoever asks tries again, or gives up without
        knowing why.
        """
        seen = self._seen.get(name)
        if seen is not None and _now() - seen[0] < self._fresh:
            _say(seen[1])
            return
        going = self._going.get(name)
        if going is None:
            if len(self._going) >= self._most:
                return
            going = self._going[name] = _Going(asyncio.create_task(self._look(name, look)))
        going.waiting += 1
        try:
            error = await asyncio.shield(going.task)
        finally:
            going.waiting -= 1
            if not going.waiting:
                del self._going[name]
                going.task.cancel()
                await asyncio.gather(going.task, return_exceptions=True)
        _say(error)

    async def _look(self, name: str, look: Callable[[], Coroutine[object, object, None]]) -> AgentVisorError | None:
        error: AgentVisorError | None = None
        try:
            await look()
        except AgentVisorError as raised:
            error = raised
        self._seen[name] = (_now(), error)
        self._seen.move_to_end(name)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return error


def _now() -> float:
    return asyncio.get_running_loop().time()


def _say(error: AgentVisorError | None) -> None:
    """Each who is told gets an error of its own: a traceback grows with each that raises it."""
    if error is not None:
        raise type(error)(error.message, **error.details)
