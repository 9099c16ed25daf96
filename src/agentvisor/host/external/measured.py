"""A backend whose calls are counted and timed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import contextmanager
from time import monotonic

from agentvisor.host.external.backend import Backend
from agentvisor.host.metrics import STORAGE_BYTES, STORAGE_REQUESTS, STORAGE_SECONDS


class MeasuredBackend:
    """Any backend, as metrics see it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def put(self, path: str, data: bytes) -> None:
        """See Backend."""
        with _measured("put"):
            await self._backend.put(path, data)
        STORAGE_BYTES.labels("put").inc(len(data))

    async def get(self, path: str, start: int, length: int) -> bytes:
        """See Backend."""
        with _measured("get"):
            data = await self._backend.get(path, start, length)
        STORAGE_BYTES.labels("get").inc(len(data))
        return data

    async def delete(self, paths: Sequence[str]) -> None:
        """See Backend."""
        with _measured("delete"):
            await self._backend.delete(paths)

    async def list(self, prefix: str) -> AsyncIterator[str]:
        """See Backend."""
        with _measured("list"):
            async for path in self._backend.list(prefix):
                yield path


@contextmanager
def _measured(call: str) -> Generator[None]:
    began, outcome = monotonic(), "failed"  # a call that is given up, too
    try:
        yield
        outcome = "done"
    except FileNotFoundError:
        outcome = "missing" if call == "get" else "failed"
        raise
    finally:
        STORAGE_SECONDS.labels(call).observe(monotonic() - began)
        STORAGE_REQUESTS.labels(call, outcome).inc()
