"""The Temporal Schedules that fire crons: each says which cron it is of, whose, and by which clock it was made."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

from temporalio.api.common.v1 import Memo, Payload
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
from agentvisor.core.crons import Cron
from agentvisor.core.errors import Conflict, Corrupt, NotFound, Sealed, Unavailable
from agentvisor.core.owners import EVERYONE, Owner
from agentvisor.host.codec.client import of_workflow
from agentvisor.host.codec.payloads import ENCODING
from agentvisor.host.codec.places import CRON_PREFIX
from agentvisor.host.workflow.cron import CRON_WORKFLOW
from agentvisor.host.workflow.expiring import upkeep_queue
from agentvisor.protocol.v1 import run_pb2

_TIMEOUT = timedelta(seconds=10)
_CATCH_UP = timedelta(minutes=10)
"""How late a run still begins that was due while Temporal was away."""
_OWNER = "owner"
_BEYOND = ":"
"""What has one has no cron's id behind our prefix: it is of a deployment whose queue's name begins with ours."""


@dataclass(frozen=True, slots=True)
class Described:
    """What a schedule says of itself."""

    owner: Owner
    clock: str
    """Of the cron as it was when the schedule was written; empty where that cannot be read."""
    age: timedelta


class CronSchedules:
    """Those of one deployment."""

    def __init__(self, client: Client, task_queue: str) -> None:
        self._client = client
        self._task_queue = task_queue

    async def describe(self, cron_id: str) -> Described | None:
        """What the schedule of a cron says; None: there is none."""
        if _BEYOND in cron_id:
            return None
        try:
            found = await self._handle(cron_id).describe(rpc_timeout=_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise _unavailable(error) from error
        owner = await self._owner_in(found.id, found.raw_description.memo)
        clock = await self._clock_in(found.id, found.schedule)
        return Described(owner, clock, datetime.now(UTC) - found.info.created_at)

    async def listed(self) -> AsyncGenerator[tuple[str, Owner]]:
        """The crons that have schedules, as far as Temporal lists them yet, and whose they are."""
        prefix = self.place("")
        try:
            async for one in await self._client.list_schedules():
                cron_id = one.id.removeprefix(prefix)
                if one.id.startswith(prefix) and _BEYOND not in cron_id:
                    yield cron_id, await self._owner_in(one.id, one.raw_entry.memo)
        except RPCError as error:
            raise _unavailable(error) from error

    async def create(self, cron: Cron) -> None:
        """Make one. `Conflict` where there is one already."""
        place = self.place(cron.cron_id)
        try:
            await self._client.create_schedule(
                place,
                self.schedule(cron),
                # The SDK does not say of what it encodes for a memo where it belongs.
                memo={_OWNER: (await of_workflow(self._client, place).encode([cron.owner]))[0]},
                rpc_timeout=_TIMEOUT,
            )
        except ScheduleAlreadyRunningError as error:
            raise Conflict(f"cron {cron.cron_id} exists already", cron_id=cron.cron_id) from error
        except RPCError as error:
            raise _unavailable(error) from error

    async def rewrite(self, cron: Cron) -> None:
        """Let it say what the cron says. `NotFound` where there is none."""
        fresh = self.schedule(cron)

        def changed(_: ScheduleUpdateInput) -> ScheduleUpdate:
            return ScheduleUpdate(fresh)

        try:
            await self._handle(cron.cron_id).update(changed, rpc_timeout=_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise NotFound(f"cron {cron.cron_id} has no schedule", cron_id=cron.cron_id) from error
            raise _unavailable(error) from error

    async def end(self, cron_id: str) -> None:
        """Let it fire no more; there may be none."""
        try:
            await self._handle(cron_id).delete(rpc_timeout=_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise _unavailable(error) from error

    def place(self, cron_id: str) -> str:
        """The schedule's id."""
        return f"{CRON_PREFIX}{self._task_queue}:{cron_id}"

    def _handle(self, cron_id: str):
        return self._client.get_schedule_handle(self.place(cron_id))

    def schedule(self, cron: Cron) -> Schedule:
        """What a cron's schedule has to say."""
        told = run_pb2.FireCron(cron_id=cron.cron_id, owner=cron.owner, clock=cron.clock)
        return Schedule(
            action=ScheduleActionStartWorkflow(
                CRON_WORKFLOW,
                told.SerializeToString(),
                id=self.place(cron.cron_id),
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

    async def _clock_in(self, place: str, schedule: Schedule) -> str:
        if not isinstance(schedule.action, ScheduleActionStartWorkflow):
            return ""
        given = cast("Sequence[Payload]", schedule.action.args)
        try:
            decoded = await of_workflow(self._client, place).decode(given, [bytes] * len(given))
        except (Sealed, Corrupt):
            return ""  # it could not fire either
        return run_pb2.FireCron.FromString(decoded[0]).clock if decoded else ""

    async def _owner_in(self, place: str, memo: Memo) -> Owner:
        kept = memo.fields.get(_OWNER)
        if kept is None:
            return EVERYONE
        # One of before there were keys stays as it is: it tells where to look for crons, and nothing of them.
        plain = kept.metadata.get("encoding") != ENCODING
        converter = DataConverter.default if plain else of_workflow(self._client, place)
        return Owner(str((await converter.decode([kept]))[0]))


def _unavailable(error: RPCError) -> Unavailable:
    return Unavailable(f"Temporal could not be asked for a schedule ({error.status.name}): {error.message}")
