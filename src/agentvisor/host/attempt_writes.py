"""Pending writes of one live attempt: logged where they are, put into external storage, or dropped and counted."""

from __future__ import annotations

import asyncio

from agentvisor.core.errors import StorageUnavailable
from agentvisor.core.ids import BlobKey
from agentvisor.core.records import Blob, TaskWrites
from agentvisor.core.thread import Thread
from agentvisor.host.attempt_log import AttemptLog, batches
from agentvisor.host.door import Door
from agentvisor.host.dropped_writes import Hit
from agentvisor.host.external.attempt_objects import AttemptObjects
from agentvisor.host.incoming import Incoming
from agentvisor.host.journal import Urgency
from agentvisor.host.store_replies import STORED
from agentvisor.protocol.convert import writes_from_message
from agentvisor.protocol.v1 import store_pb2


class AttemptWrites:
    """The part of an attempt's store that takes what tasks have written."""

    def __init__(
        self,
        thread: Thread,
        log: AttemptLog,
        door: Door,
        incoming: Incoming,
        objects: AttemptObjects | None,
        *,
        putting: asyncio.Lock,
    ) -> None:
        """`putting`: held while writes with values are taken, so that nothing comes in between."""
        self._thread = thread
        self._log = log
        self._door = door
        self._incoming = incoming
        self._objects = objects
        self._putting = putting

    async def put(self, message: store_pb2.TaskWrites) -> store_pb2.StoreReply:
        """Answered when those that are kept are durable."""
        writes = writes_from_message(message)
        if message.left_out:
            size = message.left_out_size or message.left_out
            self._door.note_left_out(writes, message.left_out_for, size)
        if not message.writes:
            return STORED
        is_short = self._is_short(writes)
        if is_short or any(write.key or self._incoming.is_large(write) for write in message.writes):
            durable = await self._log_large(message, all_out=is_short)
        else:
            admitted = self._door.admitted_writes(writes)
            durable = None if admitted is None else self._log.append([admitted], Urgency.SOON)
        if durable is not None:
            await durable
        return STORED

    def _is_short(self, writes: TaskWrites) -> bool:
        """Whether writes would be dropped or refused for want of room, and there is another place for them."""
        if self._objects is None or not self._thread.pending_writes_enabled:
            return False
        return not self._door.fits(writes) or self._door.missing_room(writes.stored_bytes, None) > 0

    async def _log_large(self, message: store_pb2.TaskWrites, *, all_out: bool) -> asyncio.Future[None] | None:
        """Log writes that are blobs, or become blobs here; None where all of them are dropped."""
        async with self._putting, self._incoming.room_for(message.writes), self._log.fresh() as fresh:
            await self._incoming.take_writes(message, fresh, all_out=all_out)
            admitted = self._door.admitted_writes(writes_from_message(message), fresh.keys())
            kept = {write.key for write in admitted.writes} if admitted is not None else set[BlobKey | None]()
            self._log.forget(fresh, kept)
            if admitted is None:
                return None
            try:
                await self._move(admitted, fresh)
            except StorageUnavailable:
                if not all(write.may_go for write in admitted.writes):
                    raise
                # Regular writes are never an error (S5). What came of them in the store is deleted.
                self._door.dropped.note(admitted, Hit("storage.url", sum(len(one.data) for one in fresh.values()), 0))
                self._log.forget(fresh)
                return None
            return self._log.append([*batches(list(fresh.values())), admitted], Urgency.SOON)

    async def _move(self, writes: TaskWrites, fresh: dict[BlobKey, Blob]) -> None:
        names = {write.key: write.channel for write in writes.writes}
        for key, blob in fresh.items():
            if self._objects is not None:
                what = f"write of task {writes.task_id} to channel {names[key]!r}"
                fresh[key] = await self._objects.write(blob, what)
