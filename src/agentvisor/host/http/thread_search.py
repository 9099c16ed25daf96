"""Threads found by what they are: by Temporal's index, or by looking at a bounded number of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from agentvisor.core.errors import AgentVisorError, InvalidInput, NotFound
from agentvisor.core.ids import ThreadId
from agentvisor.core.ids import thread_id as checked
from agentvisor.host.external.storage import Patience
from agentvisor.host.http.bodies_threads import ThreadFilter, ThreadSearch
from agentvisor.host.http.containing import contains
from agentvisor.host.http.each_thread import each_thread
from agentvisor.host.http.reading import thread_shown
from agentvisor.host.http.services import Services
from agentvisor.host.http.unreadable import unreadable_shown
from agentvisor.host.render_typed import Json
from agentvisor.protocol.reads import metadata_term

MOST_LOOKED_AT = 1000
"""Temporal neither sorts by our fields nor knows values: a search that needs these looks at so many threads at most."""
MOST_COUNTED = 100_000
_AT_A_TIME = 8
_STRIDE = 64
_PATIENCE = 5.0
"""Seconds that a search waits for external storage."""


@dataclass(frozen=True, slots=True)
class Page:
    """What of the threads that were found is shown."""

    threads: list[dict[str, Json]]
    more: bool


@dataclass(frozen=True, slots=True)
class Sought:
    """A filter, by who can answer it."""

    indexed: dict[str, str | float | bool]
    """Metadata that Temporal's index has."""
    metadata: dict[str, Json]
    """Metadata that the threads themselves must be asked for."""
    values: dict[str, Json]

    @property
    def is_indexed(self) -> bool:
        """Whether the index alone tells."""
        return not self.metadata and not self.values

    @property
    def named(self) -> str:
        """What must be looked at, for who is told that it is too much."""
        return " and ".join([*(f"metadata.{key[:80]}" for key in self.metadata), *(["values"] if self.values else [])])

    def met_by(self, thread: Mapping[str, Json]) -> bool:
        """Whether a thread has all that was not asked of the index."""
        return contains(thread["metadata"], dict(self.metadata)) and (
            not self.values or contains(thread["values"], dict(self.values))
        )


def sought(body: ThreadFilter) -> Sought:
    """Who can answer which part of a filter."""
    indexed: dict[str, str | float | bool] = {}
    looked: dict[str, Json] = {}
    for key, value in (body.metadata or {}).items():
        if isinstance(value, str | float | int) and metadata_term(key, value) is not None:
            indexed[key] = value
        else:
            looked[key] = value
    return Sought(indexed, looked, {**(body.values or {})})


async def count(services: Services, body: ThreadFilter) -> int:
    """How many threads there are."""
    asked = sought(body)
    if asked.is_indexed:
        return len(await _ids(services, body, asked, limit=MOST_COUNTED, offset=0))
    return len(await _looked_at(services, body, asked, ()))


async def page(services: Services, body: ThreadSearch, fields: Collection[str]) -> Page:
    """The page that is asked for, its threads with these fields; newest first where no other order is asked for."""
    asked, end = sought(body), body.offset + body.limit
    if body.sort_by is not None:
        key = body.sort_by
        found = await _looked_at(services, body, asked, [*fields, key])
        found.sort(key=lambda one: str(one[key]), reverse=body.sort_order != "asc")
        return Page(found[body.offset : end], len(found) > end)
    if asked.is_indexed:
        ids = await _ids(services, body, asked, limit=body.limit + 1, offset=body.offset)
        return Page(await _shown(services, ids[: body.limit], fields, body.status), len(ids) > body.limit)
    found = await _looked_at(services, body, asked, fields, enough=end + 1)
    return Page(found[body.offset : end], len(found) > end)


async def _looked_at(
    services: Services, body: ThreadFilter, asked: Sought, fields: Collection[str], *, enough: int | None = None
) -> list[dict[str, Json]]:
    """The threads that are sought, or enough of them, by reading those that the index leaves."""
    ids = await _ids(services, body, asked, limit=MOST_LOOKED_AT + 1, offset=0)
    needed = [*fields, "metadata", *(["values"] if asked.values else [])]
    if asked.is_indexed and len(ids) > MOST_LOOKED_AT:
        raise _too_many("sort_by", "sort_by")
    found: list[dict[str, Json]] = []
    for start in range(0, len(ids), _STRIDE):
        if start >= MOST_LOOKED_AT:
            break
        some = ids[start : min(start + _STRIDE, MOST_LOOKED_AT)]
        found += [one for one in await _shown(services, some, needed, body.status) if asked.met_by(one)]
        if enough is not None and len(found) >= enough:
            return found
    if len(ids) > MOST_LOOKED_AT:
        raise _too_many(asked.named, "values" if asked.values else "metadata")
    return found


def _too_many(what: str, field: str) -> InvalidInput:
    return InvalidInput(
        f"{what}: no index has it, and over {MOST_LOOKED_AT} threads match the rest of the search: "
        "narrow it by metadata, status or ids",
        field=field,
    )


async def _ids(services: Services, body: ThreadFilter, asked: Sought, *, limit: int, offset: int) -> list[ThreadId]:
    ids = None
    if isinstance(body, ThreadSearch) and body.ids is not None:
        ids = [checked(one) for one in dict.fromkeys(body.ids)]
    search = services.threads.search
    return await search(metadata=asked.indexed, status=body.status, ids=ids, limit=limit, offset=offset)


async def _shown(
    services: Services, ids: Sequence[ThreadId], fields: Collection[str], status: str | None
) -> list[dict[str, Json]]:
    """The threads of these ids; one that was deleted meanwhile is left out, one that cannot be read here says so.

    A store that is down must not make threads impossible to find: values that are there are marked instead.
    """
    patience, with_values = Patience(_PATIENCE), "values" in fields or "interrupts" in fields

    async def read(named: ThreadId) -> dict[str, Json]:
        return await thread_shown(services, named, with_values=with_values, patience=patience)

    shown = list[dict[str, Json]]()
    for named, found in zip(ids, await each_thread(ids, read, _AT_A_TIME), strict=True):
        with suppress(NotFound):
            if isinstance(found, AgentVisorError):
                shown.append(await unreadable_shown(services, named, found, status))
            elif found is not None:
                shown.append(found)
    return shown
