"""The event protocol over HTTP: commands, events as server-sent events, and both over one WebSocket."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from agentvisor.core.errors import AgentVisorError, InvalidInput
from agentvisor.core.ids import ThreadId, thread_id
from agentvisor.host.http.errors import error_body
from agentvisor.host.http.events.commands import Malformed, answered, failed, parsed
from agentvisor.host.http.events.filters import CHANNELS, Filter, filter_of
from agentvisor.host.http.events.follow import Follower
from agentvisor.host.http.events.socket import Socket
from agentvisor.host.http.events.told import Missed
from agentvisor.host.http.json import JsonResponse, JsonRoute, decode, encode
from agentvisor.host.http.live import LiveResponse
from agentvisor.host.http.open_streams import COUNTED
from agentvisor.host.http.paths import ThreadInPath
from agentvisor.host.http.services import Served, Services
from agentvisor.host.http.sse import HEADERS, ServerEvent, wire
from agentvisor.host.render_typed import Json

router = APIRouter(prefix="/threads/{thread_id}", tags=["event protocol"], route_class=JsonRoute)

_TEXT: Json = {"type": "string"}
_COMMAND: Json = {
    "type": "object",
    "required": ["id", "method"],
    "properties": {"id": {"type": "integer"}, "method": {"type": "string"}, "params": {"type": "object"}},
}
_SUBSCRIPTION: Json = {
    "type": "object",
    "required": ["channels"],
    "properties": {
        "channels": {"type": "array", "items": _TEXT, "minItems": 1, "description": ", ".join(CHANNELS)},
        "namespaces": {"type": "array", "items": {"type": "array", "items": _TEXT}},
        "depth": {"type": "integer", "minimum": 0},
        "since": {"type": "integer", "minimum": 0, "description": "Number of the last event seen."},
    },
}


def _body(schema: Json) -> dict[str, Json]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


async def _asked(request: Request) -> Filter:
    """The subscription in a body; 400 where it is none, as LangGraph's server has it."""
    body = decode(await request.body(), "the body")
    if not isinstance(body, dict):
        raise InvalidInput("the body must be a JSON object")
    return filter_of(body)


@router.post("/commands", openapi_extra=_body(_COMMAND))
async def command(thread_id: ThreadInPath, request: Request, services: Served) -> JsonResponse:
    """Start a run (`run.start`), answer what waits (`input.respond`), show a run's graphs (`agent.getTree`)."""
    try:
        asked = parsed(await request.body())
    except Malformed as error:
        return JsonResponse(error.reply, 400)
    return JsonResponse(await answered(services, thread_id, asked))


@router.post("/stream/events", openapi_extra=_body(_SUBSCRIPTION), dependencies=[COUNTED])
@router.post("/stream", openapi_extra=_body(_SUBSCRIPTION), name="stream_events_by_agent_protocol")
async def stream_events(thread_id: ThreadInPath, request: Request, services: Served) -> Response:
    """What is kept of the thread's events, then those that come, of every run; it does not end by itself.

    `/stream` is Agent Protocol's name of it.
    """
    try:
        wanted = await _asked(request)
    except InvalidInput as error:
        return JsonResponse(error_body(error), 400)
    except ValueError as error:
        return JsonResponse(error_body(InvalidInput(str(error))), 400)
    pieces = wire(_events(services, thread_id, wanted), services.heartbeat)
    return LiveResponse(pieces, "text/event-stream", HEADERS)


async def _events(services: Services, thread_id: ThreadId, wanted: Filter) -> AsyncGenerator[ServerEvent]:
    frames = Follower(services, thread_id, wanted.since).frames()
    try:
        async for frame in frames:
            if isinstance(frame, Missed) or wanted.takes(frame.told):
                yield frame.sse()
    except AgentVisorError as error:
        yield ServerEvent("error", encode(failed(None, "unknown_error", error.message)))
    finally:
        await frames.aclose()


@router.websocket("/stream/events")
async def follow(websocket: WebSocket, services: Served) -> None:
    """Commands and events over one connection; `subscription.subscribe` begins a subscription."""
    await websocket.accept()
    try:
        thread = thread_id(websocket.path_params["thread_id"])
    except InvalidInput as error:
        # A browser reads the code of a close, and no status of a refusal.
        await websocket.close(4422, error.message[:100])
        return
    await Socket(services, thread, websocket).run()
