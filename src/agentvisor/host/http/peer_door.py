"""The door for the other hosts of the deployment: it gives them the tapes of the runs that live here, and nothing else.

It stands before the API: none of its paths is one of the API's, and no key of a client opens it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from urllib.parse import parse_qs, unquote

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from agentvisor.core.ids import RunId, ThreadId
from agentvisor.host.http.json import JsonResponse
from agentvisor.host.http.live import LiveResponse
from agentvisor.host.http.sse import with_heartbeats
from agentvisor.host.peer_credential import HEADER, PeerCredential
from agentvisor.host.peer_feed import PATH, SIGN_SECONDS
from agentvisor.host.streams import RunStreams
from agentvisor.host.tape import Event, Gap, Tape, TapeId
from agentvisor.protocol.frames import frame
from agentvisor.protocol.v1.tape_pb2 import TapeEvent, TapeGap, TapeItem, TapeState

MEDIA_TYPE = "application/vnd.agentvisor.tape"
"""Frames (protocol/frames.py), each a `TapeItem`."""

_BATCH = 64 * 1024


class PeerDoor:
    """Answers what is meant for it, and passes on the rest."""

    def __init__(
        self, app: ASGIApp, streams: RunStreams, credential: PeerCredential, host_id: str, address: str
    ) -> None:
        self._app = app
        self._streams = streams
        self._credential = credential
        self._host_id = host_id
        self._address = address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PATH):
            await self._app(scope, receive, send)
            return
        await self._answer(scope)(scope, receive, send)

    def _answer(self, scope: Scope) -> ASGIApp:
        headers = Headers(scope=scope)
        raw = scope["raw_path"].decode("latin-1")
        query = scope["query_string"].decode("latin-1")
        shown = headers.get(HEADER, "")
        # A page in a browser reaches loopback under another name, and never with this header.
        known = headers.get("host", "") == self._address
        if not known or not self._credential.accepts(shown, self._host_id, raw + (f"?{query}" if query else "")):
            return _refused(401, "this door is for the hosts of one deployment: they share http.peer_key")
        if scope["method"] != "GET":
            return _refused(405, "this door answers GET only")
        thread, _, named = raw.removeprefix(PATH).partition("/")
        run = TapeId(ThreadId(unquote(thread)), RunId(unquote(named)))
        tape = self._streams.get(run)
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        after, takes_over = asked.get("after"), asked.get("takes_over", "0")
        if not (takes_over.isdecimal() and (after is None or after.isdecimal())):
            return _refused(422, "after and takes_over are numbers")
        if tape is None:
            return _refused(404, f"run {run.run_id[:80]} has no events here")
        last = int(after) if after is not None else None
        pieces = self._taken(run, tape, last, int(takes_over)) if int(takes_over) else self._tape(run, tape, last)
        return LiveResponse(pieces, MEDIA_TYPE, {HEADER: self._credential.answer(shown, self._host_id)})

    async def _tape(self, run: TapeId, tape: Tape, after: int | None) -> AsyncGenerator[bytes]:
        yield _sign(tape)
        items = self._streams.subscribe(run, after)
        async for item in with_heartbeats(items, SIGN_SECONDS):
            yield _sign(tape) if item is None else _framed(item)
        # One that was dropped to make room for others has not ended.
        yield _sign(tape, ended=self._streams.get(run) is tape)

    async def _taken(self, run: TapeId, tape: Tape, after: int | None, attempt: int) -> AsyncGenerator[bytes]:
        """What is there, to a host that goes on with the run."""
        self._streams.superseded(run, attempt)
        end = tape.next_id
        yield _sign(tape)
        if tape.items and (after is None or after < end - 1):
            batch = bytearray()
            async for item in self._streams.subscribe(run, after):
                batch += _framed(item)
                if len(batch) > _BATCH:
                    yield bytes(batch)
                    batch.clear()
                if item.id + 1 >= end:
                    break
            yield bytes(batch)
        yield _sign(tape)
        self._streams.was_taken(run)


def _framed(item: Event | Gap) -> bytes:
    if isinstance(item, Gap):
        return frame(TapeItem(gap=TapeGap(next_id=item.next_id)).SerializeToString())
    event = TapeEvent(
        id=item.id,
        attempt=item.attempt,
        mode=item.mode,
        namespace=item.namespace,
        data=item.data,
        at_ms=item.at_ms,
    )
    return frame(TapeItem(event=event).SerializeToString())


def _sign(tape: Tape, *, ended: bool = False) -> bytes:
    state = TapeState(next_id=tape.next_id, attempt=tape.attempt, ended=ended)
    return frame(TapeItem(state=state).SerializeToString())


def _refused(status: int, text: str) -> JsonResponse:
    return JsonResponse({"detail": text, "code": "permission_refused", "message": text}, status)
