"""What a thread that does not exist yet would say to its first write, so that one that is refused creates nothing."""

from __future__ import annotations

import asyncio

from agentvisor.core.ids import BlobKey, ThreadId
from agentvisor.core.records import Blob
from agentvisor.core.thread import Thread
from agentvisor.host.attempt_store import AttemptStore
from agentvisor.host.door import StoreLimits
from agentvisor.host.journal import Urgency
from agentvisor.protocol.v1 import store_pb2


async def rehearse(thread_id: ThreadId, request: store_pb2.StoreRequest, limits: StoreLimits) -> None:
    """Raise what the first write to a new thread would raise."""
    empty = Thread(thread_id, created_at_ms=0, updated_at_ms=0, pending_writes_enabled=True, metadata=b"")
    await AttemptStore(empty, _Nowhere(), _nothing, limits, says=False).call(request)


class _Nowhere:
    """A log that nobody reads."""

    def append(self, entries: list[bytes], urgency: Urgency) -> asyncio.Future[None]:  # noqa: ARG002 (the journal's)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    last_seq = 0
    is_closing = False

    async def until_fenced(self) -> None:
        """Never asked for: nothing is given back in a rehearsal."""


async def _nothing(_: list[BlobKey]) -> list[Blob]:
    return []
