"""Storing what a task wrote: one request, with the parts of large values ahead of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agentvisor.client.encoding import Typed, pack_write
from agentvisor.client.known import CheckpointName, Known
from agentvisor.client.operations import Operation
from agentvisor.client.parts import Luggage, send
from agentvisor.client.requests import WAYS_OUT, place
from agentvisor.core.errors import Corrupt, ValueTooLarge
from agentvisor.protocol.blobs import Limits, blob_key
from agentvisor.protocol.v1 import store_pb2


class PutWrites:
    """Storing what a task wrote: `ahead` is sent first, without waiting for answers, then `run`.

    So what is sent of it is on its way before a checkpoint that is put later, however large it is (WriteOrder).
    """

    def __init__(
        self,
        name: CheckpointName,
        task_id: str,
        task_path: str,
        writes: Sequence[tuple[int, str, Typed]],
        *,
        limits: Limits,
        known: Known,
        delta_channels: Collection[str] = (),
    ) -> None:
        """`writes`: each as (index, channel, value); what delta channels were written is state.

        Raises `ValueTooLarge` for state that is over the limits, and leaves out regular writes that are.
        """
        self._name = name
        self._task_id = task_id
        self._task_path = task_path
        self._known = known
        self._packed = [
            (pack_write(idx, channel, value, is_state=idx >= 0 and channel in delta_channels), value)
            for idx, channel, value in writes
        ]
        self._left_out, self._left_out_for, self._left_out_size = 0, "", 0
        for write, _ in self._packed:
            self._check(write, write.size, limits.max_value_bytes, "storage.max_value")
            self._check(write, len(write.data), limits.max_stored_bytes, "storage.max_inline_value")
        if self._left_out:
            self._packed = [(write, value) for write, value in self._packed if write.idx < 0]
        self._luggage = Luggage()
        self._request = self._announced()

    def ahead(self) -> Operation[None]:
        """The parts of values that are too large for the request."""
        for upload in self._luggage.uploads:
            yield from upload.parts(self._name.thread)

    def run(self) -> Operation[None]:
        """Store them. What was sent ahead may have been lost with the host that it was sent to: it is sent again."""
        try:
            yield self._request
        except Corrupt:
            if not self._luggage.uploads:
                raise
            self._luggage = Luggage()
            self._request = self._announced()
            yield from send(self._luggage.uploads, self._name.thread)
            yield self._request
        for write in self._request.put_writes.writes:
            if write.key:
                self._known.set_stored(self._name.thread, write.key)

    def _announced(self) -> store_pb2.StoreRequest:
        return store_pb2.StoreRequest(
            thread_id=self._name.thread,
            put_writes=store_pb2.TaskWrites(
                namespace=self._name.namespace,
                checkpoint_id=self._name.checkpoint_id,
                task_id=self._task_id,
                task_path=self._task_path,
                writes=[self._carried(write, value) for write, value in self._packed],
                left_out=self._left_out,
                left_out_for=self._left_out_for,
                left_out_size=self._left_out_size,
            ),
        )

    def _carried(self, write: store_pb2.Write, value: Typed) -> store_pb2.Write:
        upload = self._luggage.carries(write.data)
        if upload is None:
            return write
        return store_pb2.Write(
            idx=write.idx,
            channel=write.channel,
            type=write.type,
            size=write.size,
            is_state=write.is_state,
            # As of a channel's value: where the checkpoint that follows holds the same one, it is stored once.
            key=blob_key(*value),
            upload=upload.name,
            stored_size=len(write.data),
        )

    def _check(self, write: store_pb2.Write, size: int, limit: int, setting: str) -> None:
        if size <= limit:
            return
        if write.idx >= 0 and not any(one.is_state for one, _ in self._packed):
            # Regular writes spare the task a second execution, and are never an error (S5): all of them, or none.
            self._left_out_for, self._left_out_size = setting, size
            self._left_out = sum(len(one.data) for one, _ in self._packed if one.idx >= 0)
        else:
            raise ValueTooLarge(
                f"the write of task {self._task_id} to channel {write.channel!r} of {place(self._name)} has {size} "
                f"bytes, the limit is {limit} ({setting}): {WAYS_OUT}",
                channel=write.channel,
                size=str(size),
                limit=str(limit),
            )
