"""The shelf's workflow: one per owner and namespace, open as long as it holds items.

Handlers never await. What was removed does not stay in Temporal's history: the shelf continues as new some time after
it, and has the executions before it erased; where nothing is left it has all of itself erased.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from agentvisor.core.errors import Conflict, InvalidInput
    from agentvisor.core.shelf import Change, ChangeKind, Shelf
    from agentvisor.host.workflow.details_beside import shelf_details
    from agentvisor.host.workflow.hearing import noted
    from agentvisor.host.workflow.refusals import refusing
    from agentvisor.protocol.shelves import (
        changes_from_messages,
        item_to_message,
        settings_from_message,
        shelf_from_message,
        shelf_to_message,
    )
    from agentvisor.protocol.v1 import items_pb2

SHELF_WORKFLOW = "agentvisor.shelf"
ERASE_ACTIVITY = "agentvisor.erase_shelf"
CLOSING = "closing"
"""A detail of `Conflict`: the shelf is being erased, and another may begin once that is done."""

_ERASE_TIME = timedelta(seconds=60)
_FEWEST_EVENTS = 20
_HISTORY_BYTES = 8 * 1024 * 1024


def _now_ms() -> int:
    return int(workflow.time() * 1000)


@workflow.defn(name=SHELF_WORKFLOW)
class ShelfWorkflow:
    @workflow.init
    def __init__(self, state: bytes) -> None:
        self._shelf: Shelf = shelf_from_message(items_pb2.Shelf.FromString(state))
        self._updates = 0
        self._removed_at_ms: int | None = None
        """When the first thing was removed that is still in the history."""
        self._empty_since_ms: int | None = None if self._shelf.items else _now_ms()
        self._closing = self._compaction_asked = False

    @workflow.run
    async def run(self, state: bytes) -> None:  # noqa: ARG002 - taken by __init__
        erasing = asyncio.create_task(self._erase_leftovers()) if self._shelf.leftovers else None
        self._describe()
        while True:
            await self._until_something_is_due()
            self._expire()
            self._describe()
            if self._is_over():
                self._closing = True
                if erasing is not None:
                    await erasing
                await self._erase(self._everything(), ended=True)
                return  # not reached where the erasure has ended this execution
            if self._compaction_due():
                self._continue_as_new()

    async def _until_something_is_due(self) -> None:
        due = self._next_due_ms()
        timeout = None if due is None else timedelta(milliseconds=max(0, due - _now_ms()) + 1)
        try:
            await workflow.wait_condition(
                lambda: self._is_over() or self._compaction_due() or self._next_due_ms() != due, timeout=timeout
            )
        except TimeoutError:
            return

    def _next_due_ms(self) -> int | None:
        """When something is to be done that nobody asks for."""
        settings = self._shelf.settings
        times = [
            self._shelf.next_expiry_ms(),
            None if self._removed_at_ms is None else self._removed_at_ms + settings.erase_after_ms,
            None if self._empty_since_ms is None else self._empty_since_ms + settings.linger_ms,
        ]
        return min((one for one in times if one is not None), default=None)

    def _expire(self) -> None:
        if self._shelf.expire(_now_ms()):
            self._note_removal()

    def _describe(self) -> None:
        """The shelf in Temporal's UI: no event, and no part of the history."""
        workflow.set_current_details(shelf_details(self._shelf))

    def _note_removal(self) -> None:
        now = _now_ms()
        self._removed_at_ms = now if self._removed_at_ms is None else self._removed_at_ms
        self._note_emptiness(now)

    def _note_emptiness(self, now_ms: int) -> None:
        if self._shelf.items:
            self._empty_since_ms = None
        elif self._empty_since_ms is None:
            self._empty_since_ms = now_ms

    def _is_over(self) -> bool:
        since = self._empty_since_ms
        return since is not None and _now_ms() >= since + self._shelf.settings.linger_ms

    # --- callers ---------------------------------------------------------------------------------------------------

    @workflow.update
    def change(self, request: bytes) -> bytes:
        self._updates += 1
        message = items_pb2.ChangeShelf.FromString(request)
        changes, now = changes_from_messages(message.changes), _now_ms()
        if message.HasField("settings"):
            self._shelf.settings = settings_from_message(message.settings)
        with refusing():
            # Again: updates of the same workflow task were checked before any of them took place.
            self._shelf.check(changes, now, self._shelf.settings.max_bytes)
        removes = any(one.kind is ChangeKind.REMOVE and one.key in self._shelf.items for one in changes)
        self._shelf.apply(changes, now)
        if removes:
            self._note_removal()
        self._note_emptiness(now)
        self._describe()
        return items_pb2.ChangeShelfReply(revision=self._shelf.revision).SerializeToString()

    @change.validator
    def _check_change(self, request: bytes) -> None:
        with refusing():
            if self._closing:
                raise Conflict("the namespace has just become empty, and is being erased", **{CLOSING: "1"})
            message = items_pb2.ChangeShelf.FromString(request)
            changes: list[Change] = changes_from_messages(message.changes)
            if not changes:
                raise InvalidInput("there is nothing to change", field="changes")
            limit = message.settings.max_bytes or self._shelf.settings.max_bytes
            self._shelf.check(changes, _now_ms(), limit)

    @workflow.update
    def compact(self, request: bytes) -> bytes:  # noqa: ARG002 - there is nothing to say but that
        """Continue as new: what an upgrade asks of every workflow."""
        self._updates += 1
        self._compaction_asked = True
        return b""

    @workflow.query
    def read(self, request: bytes) -> bytes:
        asked = items_pb2.ReadShelf.FromString(request)
        shelf = self._shelf
        found = shelf.select(
            keys=asked.keys, filter_json=asked.filter, skip=asked.skip, limit=asked.limit, now_ms=asked.now_ms
        )
        return items_pb2.ReadShelfReply(
            items=map(item_to_message, found.items), matched=found.matched, alive=shelf.alive(asked.now_ms)
        ).SerializeToString()

    # --- upkeep ----------------------------------------------------------------------------------------------------

    def _compaction_due(self) -> bool:
        info, settings = workflow.info(), self._shelf.settings
        removed = self._removed_at_ms
        if self._compaction_asked or (removed is not None and _now_ms() >= removed + settings.erase_after_ms):
            return True
        events = info.get_current_history_length()
        return events >= _FEWEST_EVENTS and (
            info.is_continue_as_new_suggested()
            or events >= settings.compact_events
            or self._updates >= settings.compact_updates
            or info.get_current_history_size() >= _HISTORY_BYTES
        )

    def _continue_as_new(self) -> None:
        # What this execution has not had erased yet, and this execution: all of it holds what may have been removed.
        self._shelf.leftovers.append(workflow.info().run_id)
        workflow.continue_as_new(shelf_to_message(self._shelf).SerializeToString())

    async def _erase_leftovers(self) -> None:
        leftovers = list(self._shelf.leftovers)
        await self._erase(leftovers, ended=False)
        self._shelf.leftovers = [one for one in self._shelf.leftovers if one not in leftovers]

    def _everything(self) -> list[str]:
        return [*self._shelf.leftovers, workflow.info().run_id]

    async def _erase(self, run_ids: list[str], *, ended: bool) -> None:
        name = self._shelf.name
        task = items_pb2.EraseShelf(
            workflow_id=workflow.info().workflow_id,
            run_ids=run_ids,
            ended=ended,
            kind=name.kind,
            owner=name.owner,
            namespace=name.namespace,
        )
        try:
            await workflow.execute_activity(
                ERASE_ACTIVITY,
                task.SerializeToString(),
                start_to_close_timeout=_ERASE_TIME,
                retry_policy=RetryPolicy(
                    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(minutes=1)
                ),
            )
        except ActivityError as error:  # it is retried without end: an operator has stopped it
            noted("warning", "shelf_not_erased", shelf=workflow.info().workflow_id, error=str(error))
