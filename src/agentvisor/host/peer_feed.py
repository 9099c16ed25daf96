"""Reads a run's tape on another host, item by item, as it grows there."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import httpx

from agentvisor.core.errors import AgentVisorError, Unavailable
from agentvisor.host.peer_credential import HEADER, PeerCredential
from agentvisor.host.peers import Peers
from agentvisor.host.tape import Event, Gap, TapeId
from agentvisor.host.tracing.place import current
from agentvisor.protocol.frames import Frames
from agentvisor.protocol.v1.tape_pb2 import TapeItem

PATH = "/internal/v1/tapes/"
"""The ids of the thread and of the run follow, with a slash between them."""
SIGN_SECONDS = 1.0
"""How often a tape on which nothing happens gives a sign of life."""

_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=8)
_TIMEOUT = httpx.Timeout(connect=2.0, read=4 * SIGN_SECONDS, write=2.0, pool=2.0)


@dataclass(frozen=True, slots=True)
class Sign:
    """The other host lives; what it has has lower numbers than this."""

    next_id: int
    ended: bool


class PeerFeed:
    """This host's client of the others."""

    def __init__(self, peers: Peers, credential: PeerCredential) -> None:
        self._peers = peers
        self._credential = credential
        self._http = httpx.AsyncClient(timeout=_TIMEOUT, limits=_LIMITS, trust_env=False)

    async def close(self) -> None:
        await self._http.aclose()

    async def tape(
        self, host_id: str, run: TapeId, after: int | None, *, takes_over: int = 0
    ) -> AsyncGenerator[Event | Gap | Sign]:
        """The events after a number, then what comes, with signs of life in between. `Unavailable` when it breaks off.

        Args:
            host_id: another host.
            run: one that lives there, or lived there.
            after: number of the last event that is here; None: all that are kept there.
            takes_over: the attempt that begins here. The other host takes no more from an earlier one, and the items
                end with what it has.
        """
        address = await self._peers.address(host_id)
        if address is None:
            raise Unavailable(f"host {host_id} of run {run.run_id} is not known to Temporal, or shares no events")
        asked = {"after": after, "takes_over": takes_over or None}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        target = f"{PATH}{quote(run.thread_id, safe='')}/{quote(run.run_id, safe='')}" + (f"?{query}" if query else "")
        shown = self._credential.sign(host_id, target)
        place = current()
        headers = {HEADER: shown, **(place.headers if place else {})}
        try:
            async with self._http.stream("GET", f"http://{address}{target}", headers=headers) as response:
                if response.is_error:
                    raise Unavailable(f"host {host_id} refused the events of run {run.run_id}: {response.status_code}")
                if response.headers.get(HEADER) != self._credential.answer(shown, host_id):
                    raise Unavailable(f"who answers at {address} is not host {host_id}, or has another http.peer_key")
                frames = Frames()
                async for piece in response.aiter_raw():
                    for message in frames.feed(piece):
                        yield _item(TapeItem.FromString(message))
        except httpx.HTTPError as error:
            raise Unavailable(f"host {host_id} at {address} does not answer: {error!r}") from error
        except AgentVisorError:
            raise
        except ValueError as error:  # no message of ours
            raise Unavailable(f"host {host_id} at {address} sent what is no tape: {error!r}") from error


def _item(message: TapeItem) -> Event | Gap | Sign:
    match message.WhichOneof("kind"):
        case "event":
            one = message.event
            return Event(one.id, one.attempt, one.mode, tuple(one.namespace), one.data, one.at_ms)
        case "gap":
            return Gap(message.gap.next_id)
        case _:
            return Sign(message.state.next_id, message.state.ended)
