"""How a request reaches the host, whichever way there is from this process."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest


class Transport(Protocol):
    """Carries requests in the order in which they are submitted, from any thread.

    Every failure is in the future: `Unavailable` where the connection is lost, and the request's outcome unknown. A
    refusal by the host is no failure here: it is a reply that holds an error.
    """

    def submit(self, request: StoreRequest) -> Future[StoreReply]:
        """Send a request; may block while the other end is slow to take it."""
        ...

    def close(self) -> None:
        """End the connection; what was not answered fails with `Unavailable`."""
        ...
