"""A client that reads a stream in the background, as a browser would, and can leave, or lose its host."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple, cast

import httpx
from langgraph_sdk.sse import SSEDecoder, iter_lines_raw
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until

from agentvisor.testing.host import Host

SECONDS = 30.0


class Told(NamedTuple):
    """One event."""

    event: str
    data: Any
    id: int | None


class Reading:
    """One request, read until it ends, is cut off or left."""

    def __init__(self, host: HostProcess | Host, path: str, *, after: object = None, **params: Any) -> None:
        self.host = host
        self.told: list[Told] = []
        self.status = 0
        self.headers: httpx.Headers = httpx.Headers()
        self.error: Exception | None = None
        self.body = b""
        self._url = f"{host.url}{path}"
        self._params = params
        self._after = {} if after is None else {"Last-Event-ID": str(after)}
        self._client = httpx.Client(timeout=httpx.Timeout(10, read=SECONDS))
        self._response: httpx.Response | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            with self._client.stream("GET", self._url, params=self._params, headers=self._after) as response:
                self._response, self.status, self.headers = response, response.status_code, response.headers
                if response.status_code != httpx.codes.OK:
                    self.body = response.read()
                    return
                decoder = SSEDecoder()
                for line in iter_lines_raw(response):
                    part = decoder.decode(bytes(line))
                    if part is not None:
                        number = int(part.id) if part.id else None
                        self.told.append(Told(part.event, cast("Any", part.data), number))
        except Exception as error:  # noqa: BLE001 - a host that dies shows as any of several
            self.error = error

    def __iter__(self) -> Generator[Told]:
        yield from self.told

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    @property
    def last_id(self) -> int:
        return max(one.id for one in self.told if one.id is not None)

    def until(self, count: int, event: str = "custom") -> None:
        """Wait until so many of them have come."""
        until(lambda: len(self.of(event)) >= count or self.ended, seconds=SECONDS)
        assert len(self.of(event)) >= count, (self.error, self.told)

    def to_its_end(self) -> Reading:
        self._thread.join(SECONDS)
        assert self.ended, self.told[-3:]
        return self

    def leave(self) -> None:
        """Close the connection."""
        until(lambda: self._response is not None, seconds=SECONDS)
        assert self._response is not None
        stream = self._response.extensions["network_stream"]
        stream.get_extra_info("socket").shutdown(2)
        self._thread.join(SECONDS)
        self._client.close()

    def of(self, event: str) -> list[Any]:
        """The data of the events of this name."""
        return [one.data for one in self.told if one.event == event]

    @property
    def names(self) -> list[str]:
        return [one.event for one in self.told]


def increasing(*readings: Reading) -> bool:
    """Whether the numbers of all that was told, in this order, only grow. A gap's is that of what follows it."""
    numbers = [one.id for reading in readings for one in reading.told if one.event != "gap" and one.id is not None]
    return all(left < right for left, right in pairwise(numbers))


@contextmanager
def reading(host: HostProcess | Host, path: str, **options: Any) -> Generator[Reading]:
    """A reader that leaves at the end."""
    one = Reading(host, path, **options)
    try:
        yield one
    finally:
        if not one.ended:
            one.leave()
