"""How every error looks over HTTP: one table from the tree of errors to status codes, one body for all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from agentvisor.core.errors import (
    AgentBroken,
    AgentVisorError,
    Conflict,
    Corrupt,
    Fenced,
    IncompatibleState,
    Internal,
    InvalidInput,
    NotFound,
    PermissionRefused,
    Sealed,
    StateTooLarge,
    StorageUnavailable,
    ThreadFailed,
    Unavailable,
    UnknownAgent,
    UnknownOutcome,
    UpdateRefused,
    ValueTooLarge,
)
from agentvisor.host.http.json import JsonResponse
from agentvisor.host.render_typed import Json

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.http")

STATUS: dict[type[AgentVisorError], int] = {
    InvalidInput: 422,
    UnknownAgent: 422,
    UpdateRefused: 400,
    AgentBroken: 424,
    NotFound: 404,
    Conflict: 409,
    Fenced: 409,
    UnknownOutcome: 409,
    IncompatibleState: 409,
    ThreadFailed: 409,
    PermissionRefused: 403,
    ValueTooLarge: 413,
    StateTooLarge: 413,
    Unavailable: 503,
    StorageUnavailable: 503,
    Sealed: 503,
    Corrupt: 424,
    Internal: 500,
}
"""Total: every error of the tree has its row."""

_CODES = {
    401: "unauthenticated",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    413: "value_too_large",
    414: "value_too_large",
    429: "too_many",
    431: "value_too_large",
}
"""Of what HTTP itself refuses."""

_NO_OBJECT = ("missing", "dict_type", "model_type", "model_attributes_type")
"""What pydantic says of a body that is empty, null, a list or a text."""
_KIND = re.compile(r"str|int|float|bool|[A-Z]\w*|[a-z]+(-[a-z]+)+|\w+\[.*\]")
"""What pydantic puts behind a field's name for one of the kinds of values that it takes: `TimeToLive`, `list[str]`."""


def error_response(error: AgentVisorError) -> JsonResponse:
    """The answer to a request that failed so."""
    status = STATUS.get(type(error), 500)
    headers = {"retry-after": "1"} if status == 503 else None
    return JsonResponse(error_body(error), status, headers)


def error_body(error: AgentVisorError) -> dict[str, Json]:
    """`detail` is read by LangGraph's clients, `code` and `message` by those of Agent Protocol."""
    details: dict[str, Json] = {**error.details}
    return {"detail": error.message, "code": error.code, "message": error.message, "metadata": details}


def refusal(status: int, text: str, headers: Mapping[str, str] | None = None) -> JsonResponse:
    """The answer to a request that no route was asked for."""
    code = _CODES.get(status, "invalid_input" if status < 500 else "internal")
    body: dict[str, Json] = {"detail": text, "code": code, "message": text, "metadata": {}}
    return JsonResponse(body, status, headers)


async def refuse(response: JsonResponse, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request so; a WebSocket, which nobody has accepted yet, is refused with the same."""
    if scope["type"] == "websocket":
        await receive()  # the wish to connect: what is sent now is the answer to that
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": 1008})
            return
    await response(scope, receive, send)


def install(app: FastAPI) -> None:
    """Let the app answer every failure by the table."""

    @app.exception_handler(AgentVisorError)
    async def _(request: Request, error: AgentVisorError) -> JsonResponse:
        if STATUS.get(type(error), 500) >= 500:
            log.warning(
                "request_failed",
                method=request.method,
                route=getattr(request.scope.get("route"), "path", "unknown"),
                error=error.message,
            )
        return error_response(error)

    @app.exception_handler(RequestValidationError)
    async def _(_: Request, error: RequestValidationError) -> JsonResponse:
        return error_response(InvalidInput(_problems(error.errors())))

    @app.exception_handler(HTTPException)
    async def _(_: Request, error: HTTPException) -> JsonResponse:
        return refusal(error.status_code, error.detail, error.headers)

    @app.exception_handler(Exception)
    async def _(_: Request, __: Exception) -> JsonResponse:
        return error_response(Internal("AgentVisor failed to answer; the host's log has the traceback"))


def _problems(errors: Sequence[object]) -> str:
    """`input: Field required`, by fields; what would do for one that takes several kinds of values, with or between."""
    fields: dict[str, list[str]] = {}
    for one in errors:
        where, text = _problem(cast("Mapping[str, object]", one))
        fields.setdefault(where, []).append(text)
    return "; ".join(
        f"{where}: {', or '.join(dict.fromkeys(texts))}" if where else ", or ".join(texts)
        for where, texts in fields.items()
    )


def _problem(error: Mapping[str, object]) -> tuple[str, str]:
    """The field as the caller wrote it, and what is wrong with it."""
    _, *names = cast("tuple[str | int, ...]", error["loc"])
    text = str(error["msg"]).removeprefix("Value error, ")
    if not names and error["type"] in _NO_OBJECT:
        return "", "the body must be a JSON object"
    if error["type"] == "extra_forbidden":
        text = "unknown field"
    elif error["type"] in _NO_OBJECT[1:]:
        text = "Input should be a JSON object"
    return ".".join(str(one) for one in names if not _KIND.fullmatch(str(one))), text
