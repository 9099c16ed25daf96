"""Crons of every owner: kept on shelves, and each with a Temporal Schedule that fires it.

What the shelf says holds: a schedule is made before its cron is there and ended after it is gone, so that whatever is
cut off between the two leaves a schedule too many, which ends itself when it fires (host/cron_activity.py), and never
a cron that nothing fires.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import time

from temporalio.api.common.v1 import Memo
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.converter import DataConverter
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.cron_schedule import CronSchedule
from agentvisor.core.crons import Cron, decoded
from agentvisor.core.errors import Conflict, NotFound, StateTooLarge, Unavailable
from agentvisor.core.ids import ThreadId
from agentvisor.core.owners import EVERYONE, Owner
from agentvisor.core.shelf import Change, ChangeKind, ShelfName
from agentvisor.host.codec.client import of_workflow
from agentvisor.host.codec.payloads import ENCODING
from agentvisor.host.codec.places import CRON_PREFIX
from agentvisor.host.shelves import Shelves
from agentvisor.host.workflow.cron import CRON_WORKFLOW
from agentvisor.host.workflow.expiring import upkeep_queue
from agentvisor.protocol.v1 import run_pb2

_TIMEOUT = timedelta(seconds=10)
_CATCH_UP = timedelta(minutes=10)
"""How late a run still begins that was due while Temporal was away."""
_TRIES = 20
"""At a cron that others change at the same time."""
_OWNER = "owner"


class Crons:
    """The crons of one deployment; each call says for whom it is, and the operator has everybody's."""

    def __init__(self, client: Client, shelves: Shelves, task_queue: str) -> None:
        self._client = client
        self._shelves = shelves
        self._task_queue = task_queue

    # --- reads -----------------------------------------------------------------------------------------------------

    async def find(self, caller: Owner, cron_id: str) -> Cron:
        """The cron of that id; `NotFound` where there is none, or it is another owner's."""
        return (await self._find(caller, cron_id))[0]

    async def _find(self, caller: Owner, cron_id: str) -> tuple[Cron, int]:
        owner = caller
        found = (await self._shelves.read(_shelf(owner), keys=[cron_id])).items
        if not found and caller == EVERYONE and (owner := await self._owner_of(cron_id)):
            found = (await self._shelves.read(_shelf(owner), keys=[cron_id])).items
        if not found:
            raise NotFound(f"cron {cron_id} does not exist", cron_id=cron_id)
        return decoded(found[0].value), found[0].revision

    async def _owner_of(self, cron_id: str) -> Owner:
        try:
            schedule = await self._handle(cron_id).describe(rpc_timeout=_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return EVERYONE
            raise _unavailable(error) from error
        return await self._owner_in(schedule.id, schedule.raw_description.memo)

    async def all(self, caller: Owner) -> list[Cron]:
        """Every cron that the caller has; for the operator every owner's, as far as Temporal lists them yet."""
        owners = {caller, *(await self._owners() if caller == EVERYONE else ())}
        return [decoded(item.value) for owner in owners for item in (await self._shelves.read(_shelf(owner))).items]

    async def _owners(self) -> set[Owner]:
        found: set[Owner] = set()
        try:
            async for one in await self._client.list_schedules():
                if one.id.startswith(self._place("")):
                    found.add(await self._owner_in(one.id, one.raw_entry.memo))
        except RPCError as error:
            raise _unavailable(error) from error
        return found

    async def _owner_in(self, place: str, memo: Memo) -> Owner:
        kept = memo.fields.get(_OWNER)
        if kept is None:
            return EVERYONE
        # One of before there were keys stays as it is: it tells where to look for crons, and nothing of them.
        plain = kept.metadata.get("encoding") != ENCODING
        converter = DataConverter.default if plain else of_workflow(self._client, place)
        return Owner(str((await converter.decode([kept]))[0]))

    # --- writes ----------------------------------------------------------------------------------------------------

    async def create(self, cron: Cron) -> Cron:
        """Keep a new one, and have it fired."""
        place = self._place(cron.cron_id)
        try:
            await self._client.create_schedule(
                place,
                self._schedule(cron),
                # The SDK does not say of what it encodes for a memo where it belongs.
                memo={_OWNER: (await of_workflow(self._client, place).encode([cron.owner]))[0]},
                rpc_timeout=_TIMEOUT,
            )
        except ScheduleAlreadyRunningError as error:
            raise Conflict(f"cron {cron.cron_id} exists already", cron_id=cron.cron_id) from error
        except RPCError as error:
            raise _unavailable(error) from error
        try:
            await self._keep(cron, expected=0)
        except BaseException:
            await self._end(cron.cron_id)
            raise
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
            return after
        raise Conflict(f"cron {cron_id} is changed by others all the time: try again", cron_id=cron_id)

    async def fit(self, cron: Cron) -> None:
        """Make its schedule say what the cron says."""
        fresh = self._schedule(cron)

        def changed(_: ScheduleUpdateInput) -> ScheduleUpdate:
            return ScheduleUpdate(fresh)

        try:
            await self._handle(cron.cron_id).update(changed, rpc_timeout=_TIMEOUT)
        except RPCError as error:
            raise _unavailable(error) from error

    async def delete(self, caller: Owner, cron_id: str) -> None:
        """Delete one: it starts nothing any more; what it has started goes on."""
        await self.forget(await self.find(caller, cron_id))

    async def forget(self, cron: Cron) -> None:
        """Delete one that was read."""
        await self._shelves.change(_shelf(Owner(cron.owner)), [Change(ChangeKind.REMOVE, cron.cron_id)])
        await self._end(cron.cron_id)

    async def forget_thread(self, thread_id: ThreadId, owner: Owner) -> None:
        """Delete those of a thread that is deleted: its owner's, and the operator's."""
        for each in {owner, EVERYONE}:
            for item in (await self._shelves.read(_shelf(each))).items:
                cron = decoded(item.value)
                if cron.thread_id == thread_id:
                    await self.forget(cron)

    async def end_stray(self, cron_id: str, older_than: timedelta) -> bool:
        """End a schedule whose cron is not there, unless that may be about to come; whether it is ended."""
        try:
            described = await self._handle(cron_id).describe(rpc_timeout=_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return True
            raise _unavailable(error) from error
        if datetime.now(UTC) - described.info.created_at < older_than:
            return False
        await self._end(cron_id)
        return True

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

    async def _end(self, cron_id: str) -> None:
        try:
            await self._handle(cron_id).delete(rpc_timeout=_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise _unavailable(error) from error

    # --- Temporal --------------------------------------------------------------------------------------------------

    def _place(self, cron_id: str) -> str:
        return f"{CRON_PREFIX}{self._task_queue}:{cron_id}"

    def _handle(self, cron_id: str):
        return self._client.get_schedule_handle(self._place(cron_id))

    def _schedule(self, cron: Cron) -> Schedule:
        told = run_pb2.FireCron(cron_id=cron.cron_id, owner=cron.owner, clock=cron.clock)
        return Schedule(
            action=ScheduleActionStartWorkflow(
                CRON_WORKFLOW,
                told.SerializeToString(),
                id=self._place(cron.cron_id),
                task_queue=upkeep_queue(self._task_queue),
            ),
            spec=ScheduleSpec(
                cron_expressions=CronSchedule.parse(cron.schedule).expressions(),
                time_zone_name=cron.timezone or "UTC",
                end_at=None if cron.end_time_ms is None else datetime.fromtimestamp(cron.end_time_ms / 1000, UTC),
            ),
            # What becomes of a run that meets another is its multitask_strategy's to say.
            policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.ALLOW_ALL, catchup_window=_CATCH_UP),
            state=ScheduleState(paused=not cron.enabled),
        )


def now_ms() -> int:
    """The time on this host."""
    return int(time() * 1000)


def _shelf(owner: Owner) -> ShelfName:
    return ShelfName("crons", owner, ())


def _unavailable(error: RPCError) -> Unavailable:
    return Unavailable(f"Temporal could not be asked for a schedule ({error.status.name}): {error.message}")
