"""What /openapi.json says that routes do not say: every error, what is no JSON, what fields of many bodies mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from fastapi import FastAPI
from pydantic import BaseModel, Field, JsonValue

from agentvisor.host.http.meanings import add_meanings
from agentvisor.host.http.replies import add_replies
from agentvisor.protocol.exports import MEDIA_TYPE

_EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {
            "type": "string",
            "description": "The stream mode, with `|` and the namespace of a subgraph after it.",
        },
        "data": {"type": "string", "description": "JSON."},
        "id": {"type": "string", "description": "What Last-Event-ID goes on after."},
    },
}
_TEXT: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
_EVENTS: dict[str, Any] = {"text/event-stream": {"schema": _EVENT}}
_FILE: dict[str, Any] = {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}
_HTTP_METHODS = frozenset({"get", "post", "put", "patch", "delete"})


class Error(BaseModel):
    """Every answer that is no success."""

    detail: str = Field(description="What happened, and what to do; read by LangGraph's clients.")
    code: str = Field(description="The kind of failure, for programs.")
    message: str = Field(description="The same as `detail`, for clients of Agent Protocol.")
    metadata: dict[str, JsonValue] | None = Field(default=None, description="Of which thread, run or field it speaks.")


ERRORS: dict[int | str, dict[str, Any]] = {"4XX": {"model": Error}, "5XX": {"model": Error}}
"""Of every route."""


def document(app: FastAPI) -> None:
    """Let the app's description say which media types there are beside JSON."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            described = describe()
            add_meanings(described)
            add_replies(described)
            for path, answer in _successes(described):
                if "content" in answer and path in ("/metrics", "/codec"):
                    answer["content"] = _TEXT
                elif "content" in answer and path.endswith("/export"):
                    answer["content"] = _FILE
                elif "content" in answer and path.endswith(("/stream", "/stream/events")):
                    answer["content"] = _EVENTS
        return describe()

    app.openapi = openapi


def _successes(described: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            if method in _HTTP_METHODS:
                for status, answer in operation["responses"].items():
                    if status.startswith("2"):
                        yield cast("str", path), answer
