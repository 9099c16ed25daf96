"""Crons of every owner: kept on shelves, and each with a Temporal Schedule that fires it.

What the shelf says holds: a schedule is made before its cron is there and ended after it is gone. A host that dies
between the two leaves a schedule too many, or one of the time before; so a host looks once at the schedule of each
cron that it reads, again once the cron was changed, and at all of them when it starts. What nobody looks at ends itself
when it fires (host/cron_activity.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from time import time

import structlog
from temporalio.client import Client

from agentvisor.core.crons import Cron, decoded
from agentvisor.core.errors import AgentVisorError, Conflict, NotFound, StateTooLarge, Unavailable
from agentvisor.core.ids import ThreadId
from agentvisor.core.owners import EVERYONE, Owner
from agentvisor.core.shelf import Change, ChangeKind, Item, ShelfName
from agentvisor.host.cron_schedules import CronSchedules, Described
from agentvisor.host.shelves import Shelves

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.crons")

_TRIES = 20
"""At a cron that others change at the same time."""
_BEGINS = timedelta(minutes=1)
"""For so long after its schedule, a cron may be about to be kept."""
_LOOKED_AT = 10_000
"""Crons of which a host remembers that it has looked."""


class Crons:
    """The crons of one deployment; each call says for whom it is, and the operator has everybody's."""

    def __init__(self, client: Client, shelves: Shelves, task_queue: str) -> None:
        self._shelves = shelves
        self._schedules = CronSchedules(client, task_queue)
        self._looked: dict[str, int] = {}
        """At which revision of a cron this host saw its schedule say the same."""

    # --- reads -----------------------------------------------------------------------------------------------------

    async def find(self, caller: Owner, cron_id: str) -> Cron:
        """The cron of that id; `NotFound` where there is none, or it is another owner's."""
        cron, revision = await self._find(caller, cron_id)
        await self._look(cron, revision)
        return cron

    async def _find(self, caller: Owner, cron_id: str) -> tuple[Cron, int]:
        found = await self._kept(caller, cron_id)
        if found is None and (described := await self._schedules.describe(cron_id)):
            of_owner = await self._kept(described.owner, cron_id)
            if of_owner is None:
                await self._end_stray(cron_id, described, _BEGINS)
            elif caller == EVERYONE:
                found = of_owner
        if found is None:
            raise NotFound(f"cron {cron_id} does not exist", cron_id=cron_id)
        return found

    async def _kept(self, owner: Owner, cron_id: str) -> tuple[Cron, int] | None:
        found = (await self._shelves.read(_shelf(owner), keys=[cron_id])).items
        return (decoded(found[0].value), found[0].revision) if found else None

    async def all(self, caller: Owner) -> list[Cron]:
        """Every cron that the caller has; for the operator every owner's, as far as Temporal lists them yet."""
        owners = {caller}
        if caller == EVERYONE:
            owners |= {owner async for _, owner in self._schedules.listed()}
        found = [(decoded(item.value), item) for owner in owners for item in await self._of(owner)]
        for cron, item in found:
            await self._look(cron, item.revision)
        return [cron for cron, _ in found]

    async def _of(self, owner: Owner) -> list[Item]:
        return (await self._shelves.read(_shelf(owner))).items

    # --- writes ----------------------------------------------------------------------------------------------------

    async def create(self, cron: Cron) -> Cron:
        """Keep a new one, and have it fired."""
        await self._schedules.create(cron)
        try:
            await self._keep(cron, expected=0)
        except (Conflict, StateTooLarge):
            await self._schedules.end(cron.cron_id)
            raise
        # Of any other failure nobody knows whether it was kept: without its schedule it would be one that never fires.
        return cron

    async def update(self, caller: Owner, cron_id: str, follows: Callable[[Cron], Cron]) -> Cron:
        """Change one; runs that it has started go on as they are."""
        for _ in range(_TRIES):
            before, revision = await self._find(caller, cron_id)
            after = follows(before)
            try:
                await self._keep(after, expected=revision)
            except Conflict:
                continue  # somebody else was faster: on top of that
            if after.clock != before.clock:
                await self.fit(after)
            else:
                await self._look(after, revision)
            return after
        raise Conflict(f"cron {cron_id} is changed by others all the time: try again", cron_id=cron_id)

    async def fit(self, cron: Cron) -> bool:
        """Have a cron that was read fired as it says, or as it says once others change it meanwhile; False: deleted."""
        for _ in range(_TRIES):
            try:
                await self._schedules.rewrite(cron)
            except NotFound:
                with suppress(Conflict):  # somebody else was faster
                    await self._schedules.create(cron)
            found = await self._kept(Owner(cron.owner), cron.cron_id)
            if found is None:
                await self._schedules.end(cron.cron_id)
                return False
            was, (cron, revision) = cron, found
            if cron.clock == was.clock:
                self._saw(cron.cron_id, revision)
                return True
        raise Conflict(f"cron {cron.cron_id} is changed by others all the time: try again", cron_id=cron.cron_id)

    async def delete(self, caller: Owner, cron_id: str) -> None:
        """Delete one: it starts nothing any more; what it has started goes on."""
        await self.forget((await self._find(caller, cron_id))[0])

    async def forget(self, cron: Cron) -> None:
        """Delete one that was read."""
        await self._shelves.change(_shelf(Owner(cron.owner)), [Change(ChangeKind.REMOVE, cron.cron_id)])
        self._looked.pop(cron.cron_id, None)
        await self._schedules.end(cron.cron_id)

    async def forget_thread(self, thread_id: ThreadId, owner: Owner) -> None:
        """Delete those of a thread that is deleted: its owner's, and the operator's."""
        for each in {owner, EVERYONE}:
            for item in await self._of(each):
                cron = decoded(item.value)
                if cron.thread_id == thread_id:
                    await self.forget(cron)

    async def _keep(self, cron: Cron, *, expected: int) -> None:
        change = Change(ChangeKind.SET, cron.cron_id, cron.encoded(), expected_revision=expected)
        try:
            await self._shelves.change(_shelf(Owner(cron.owner)), [change])
        except StateTooLarge as error:
            raise StateTooLarge(
                f"the crons would take {error.details.get('size')} bytes together, the limit is "
                f"{error.details.get('limit')} (storage.max_state): delete some, or give them smaller inputs",
                **error.details,
            ) from error

    # --- what a host that died has left ----------------------------------------------------------------------------

    async def repair(self, begins: timedelta = _BEGINS) -> None:
        """Look at every schedule that Temporal lists, and at every cron of their owners.

        `begins`: for so long after its schedule, a cron may be about to be kept.
        """
        owners, strays = {EVERYONE}, list[str]()
        try:
            async for cron_id, owner in self._schedules.listed():
                owners.add(owner)
                if await self._kept(owner, cron_id) is None and not await self.end_stray(cron_id, begins):
                    strays.append(cron_id)
            for owner in owners:
                for item in await self._of(owner):
                    await self._look(decoded(item.value), item.revision)
            if strays:
                await asyncio.sleep(begins.total_seconds())
            for cron_id in strays:
                with suppress(NotFound):
                    await self.find(EVERYONE, cron_id)
        except AgentVisorError as error:
            log.warning("crons_not_looked_at", error=error.code, text=error.message)

    async def end_stray(self, cron_id: str, older_than: timedelta = _BEGINS) -> bool:
        """End a schedule whose cron is not there, unless that may be about to come; whether it is ended."""
        described = await self._schedules.describe(cron_id)
        return described is None or await self._end_stray(cron_id, described, older_than)

    async def _end_stray(self, cron_id: str, described: Described, older_than: timedelta) -> bool:
        if described.age < older_than:
            return False
        await self._schedules.end(cron_id)
        log.info("cron_repaired", cron=cron_id, was="a schedule without a cron")
        return True

    async def _look(self, cron: Cron, revision: int) -> None:
        """Once for each change of a cron: see to it that its schedule says what it says."""
        if self._looked.get(cron.cron_id) == revision:
            return
        with suppress(Unavailable, Conflict):  # a reader has what was asked for; the next one looks again
            described = await self._schedules.describe(cron.cron_id)
            if described is not None and described.clock == cron.clock:
                self._saw(cron.cron_id, revision)
            elif await self.fit(cron):
                was = "no schedule" if described is None else "a schedule of another time"
                log.info("cron_repaired", cron=cron.cron_id, was=was)

    def _saw(self, cron_id: str, revision: int) -> None:
        if len(self._looked) >= _LOOKED_AT:
            self._looked.clear()
        self._looked[cron_id] = revision


def now_ms() -> int:
    """The time on this host."""
    return int(time() * 1000)


def _shelf(owner: Owner) -> ShelfName:
    return ShelfName("crons", owner, ())
