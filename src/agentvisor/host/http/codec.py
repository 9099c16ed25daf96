"""Decrypts what Temporal's UI and command line show: Temporal's codec server, behind a key of its own."""

from __future__ import annotations

import base64
import binascii
import hmac

from fastapi import APIRouter
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentvisor.host.codec.shown import shown
from agentvisor.host.http.json import JsonResponse, JsonRoute
from agentvisor.host.http.services import Served, Services

router = APIRouter(tags=["host"], route_class=JsonRoute)

PATHS = ("/codec", "/codec/decode")
"""Where the host's own keys do not count: only `encryption.codec_key` opens them."""


@router.get("/codec")
async def look(services: Served, request: Request) -> Response:
    """Ask for the key as a browser does (Basic), so that Temporal's UI in the same browser may send it afterwards."""
    _require_key(services, request)
    return PlainTextResponse("This browser may decrypt payloads now: go back to Temporal's UI.")


@router.post("/codec/decode")
async def decode(services: Served, request: Request) -> JsonResponse:
    """Decrypt payloads, each for the place that it names; what cannot be decrypted says so in its place."""
    _require_key(services, request)
    found = shown(await request.json(), services.keyring, request.headers.get("x-namespace"))
    return JsonResponse(found)


def _require_key(services: Services, request: Request) -> None:
    key = services.config.encryption.codec_key
    if key is None:
        raise HTTPException(404, "this host decrypts for nobody: encryption.codec_key is not set")
    if not hmac.compare_digest(_given(request.headers).encode(), key.get_secret_value().encode()):
        raise HTTPException(
            401,
            "this needs encryption.codec_key: send `Authorization: Bearer KEY`, or it as the password of Basic",
            {"www-authenticate": 'Basic realm="AgentVisor codec", charset="UTF-8"'},
        )


def _given(headers: Headers) -> str:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


class CodecPages:
    """Lets pages of Temporal's UI, and no others, read the codec's answers, with the key that their browser has.

    Which pages may call the API is another question: for these paths, this has the only word.
    """

    def __init__(self, app: ASGIApp, origins: list[str]) -> None:
        self._app = app
        # `*` is no origin here: with it, any page could use the key that a browser keeps.
        self._origins = frozenset(origins) - {"*"}
        self._asked = CORSMiddleware(
            app,
            allow_origins=sorted(self._origins),
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            allow_credentials=True,
            allow_private_network=True,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in PATHS:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if scope["method"] == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers:
            await self._asked(scope, receive, send)
            return
        origin = headers.get("origin", "")

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                del headers["access-control-allow-origin"]
                headers["vary"] = "origin"
                if origin.lower() in self._origins:
                    headers["access-control-allow-origin"] = origin
                    headers["access-control-allow-credentials"] = "true"
            await send(message)

        await self._app(scope, receive, told)
