"""What an SDK does with large values, step by step: real puts, writes and reads, without a process of its own."""

import random
from collections.abc import Awaitable, Callable, Mapping

from google.protobuf.struct_pb2 import Struct
from tests.support.operations import carried_out

from agentvisor.client.encoding import Typed
from agentvisor.client.known import CheckpointName, Known
from agentvisor.client.put import NewCheckpoint, Put
from agentvisor.client.put_writes import PutWrites
from agentvisor.client.reads import FoundCheckpoint, get
from agentvisor.protocol.blobs import Limits
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

Call = Callable[[StoreRequest], Awaitable[StoreReply]]

ANY_SIZE = Limits(max_value_bytes=1 << 30, max_stored_bytes=1 << 30)
"""The SDK refuses nothing: what a host refuses is seen."""


def noise(size: int, seed: object = 0) -> bytes:
    """Bytes that do not compress."""
    return random.Random(str(seed)).randbytes(size)


def checkpoint_id(number: int) -> str:
    return f"{number:08}"


class Saver:
    """One process's saver: puts name what is known to be stored, as the real one's do."""

    def __init__(self, call: Call, thread: str = "", *, run_id: str = "") -> None:
        self.call = call
        self.known = Known()
        self._thread = thread
        self._run_id = run_id

    def name(self, number: int | None = None) -> CheckpointName:
        return CheckpointName(self._thread, "", "" if number is None else checkpoint_id(number))

    async def put(self, number: int, values: Mapping[str, bytes], *, limits: Limits = ANY_SIZE) -> None:
        """Checkpoint `number`, whose channels hold these values."""
        typed: dict[str, Typed] = {channel: ("bytes", value) for channel, value in values.items()}
        metadata = Struct()
        if self._run_id:
            metadata.update({"run_id": self._run_id})
        new = NewCheckpoint(
            name=self.name(number),
            parent_id=checkpoint_id(number - 1) if number else "",
            ts="",
            record=("msgpack", b"record"),
            metadata=metadata,
            versions={channel: f"{number}.{channel}" for channel in values},
            changed=typed,
            unchanged=typed.get,
        )
        await carried_out(Put(new, self.known, limits).run(), self.call)

    async def write(self, number: int, task: str, values: Mapping[str, bytes], *, delta: bool = False) -> None:
        """What a task of checkpoint `number` wrote."""
        writes = [(idx, channel, ("bytes", value)) for idx, (channel, value) in enumerate(values.items())]
        deltas = list(values) if delta else []
        storing = PutWrites(
            self.name(number), task, "", writes, limits=ANY_SIZE, known=self.known, delta_channels=deltas
        )
        for part in storing.ahead():
            await self.call(part)
        await carried_out(storing.run(), self.call)

    async def get(self, number: int | None = None) -> FoundCheckpoint | None:
        """Read as a fresh process does, that knows nothing yet."""
        return await carried_out(get(self.name(number), Known(), lambda _: {}), self.call)

    async def values(self, number: int | None = None) -> dict[str, bytes]:
        found = await self.get(number)
        assert found is not None
        return {channel: data for channel, (_, data) in found.values.items()}

    async def written(self, number: int | None = None) -> dict[str, bytes]:
        """By channel, what tasks have written."""
        found = await self.get(number)
        assert found is not None
        return {channel: data for _, channel, (_, data) in found.pending}
