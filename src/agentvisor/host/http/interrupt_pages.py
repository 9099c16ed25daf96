"""Pages of what waits over all threads: filtered before they are cut, and none is missed where others are answered.

A place in the list is a thread, by when its execution began; it stays where it is while threads before it are answered
and drop out, which a number would not.
"""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

from agentvisor.core.errors import InvalidInput, NotFound
from agentvisor.core.ids import ThreadId
from agentvisor.host.external.storage import Patience
from agentvisor.host.http.open_interrupts import Look, Open, look
from agentvisor.host.http.services import Services
from agentvisor.host.http.unreadable import UNREADABLE

_AT_A_TIME = 8
_PATIENCE = 5.0
"""Seconds that a page waits for external storage."""
_MOST_THREADS = 1_000
"""How many threads one page looks at: where few of what waits is wanted, pages are short."""
_CLOSE = timedelta(milliseconds=1)
"""Executions that began within it are told apart by their threads' ids: no server is asked how finely it counts."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ends: with a thread whose execution began then, and which it has shown of those about that time."""

    time: datetime
    shown: Mapping[ThreadId, datetime]

    def __str__(self) -> str:
        told = json.dumps([self.time.isoformat(), {one: time.isoformat() for one, time in self.shown.items()}])
        return urlsafe_b64encode(told.encode()).decode().rstrip("=")


def place_from(text: str) -> Place:
    """`InvalidInput` for what no page has said."""
    try:
        told: object = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        time, shown = cast("tuple[str, dict[str, str]]", told)
        return Place(_time(time), {ThreadId(one): _time(then) for one, then in shown.items()})
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidInput("after is what X-Pagination-Next of the page before said", field="after") from error


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Page:
    """Some of what waits, whole threads, and where the next page begins; None: nothing is left."""

    found: list[tuple[Look, Open]]
    next: Place | None


async def page(services: Services, wanted: Callable[[Look, Open], bool], limit: int, after: Place | None) -> Page:
    """The next interrupts that are wanted: it ends with the thread that brings it to `limit`."""
    found: list[tuple[Look, Open]] = []
    looked_at, left = 0, True
    while left and looked_at < _MOST_THREADS and len(found) < limit:
        listed = await _threads(services, after, _AT_A_TIME + 1)
        threads, left = listed[:_AT_A_TIME], len(listed) > _AT_A_TIME
        looks = await _looks(services, [one for one, _ in threads])
        for (thread_id, time), seen in zip(threads, looks, strict=True):
            if len(found) >= limit:
                left = True
                break
            after = _after(after, thread_id, time)
            if seen is not None:
                found += [(seen, one) for one in seen.open.values() if wanted(seen, one)]
        looked_at += len(threads)
    return Page(found, after if left else None)


async def _threads(services: Services, after: Place | None, limit: int) -> list[tuple[ThreadId, datetime]]:
    if after is None:
        return await services.threads.interrupted(None, limit)
    listed = await services.threads.interrupted(after.time + _CLOSE, limit + len(after.shown))
    return [(one, time) for one, time in listed if one not in after.shown][:limit]


def _after(before: Place | None, thread_id: ThreadId, time: datetime) -> Place:
    about = {one: then for one, then in before.shown.items() if then <= time + _CLOSE} if before is not None else {}
    return Place(time, {**about, thread_id: time})


async def _looks(services: Services, ids: list[ThreadId]) -> list[Look | None]:
    patience = Patience(_PATIENCE)

    async def one(named: ThreadId) -> Look | None:
        try:
            return await look(services, named, patience=patience)
        except (NotFound, *UNREADABLE):
            return None  # deleted meanwhile, or nothing here can say what it waits for

    return await asyncio.gather(*map(one, ids))
