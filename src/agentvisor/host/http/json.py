"""JSON in and out, strictly: what is not JSON is refused, and whatever is sent can be read again."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, cast

from fastapi import HTTPException
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import override

from agentvisor.host.render_typed import Json

_DEEPEST = 200
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""As JSON writes what is no character; a pair of them is one."""


def encode(value: object) -> bytes:
    """Compact JSON. Half a surrogate pair, which UTF-8 does not have, is written as its escape."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def decode(data: bytes, what: str) -> Json:
    """The value of a JSON text; ValueError says where it is none."""
    try:
        value = cast("Json", json.loads(data, parse_constant=_not_json, parse_float=_finite))
    except RecursionError:
        raise ValueError(f"{what} is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{what} is not JSON: {error}") from None
    if _deeper(value, _DEEPEST):
        raise ValueError(f"{what} is nested more than {_DEEPEST} levels deep")
    return value


def _not_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    """Python reads 1e999 as infinity, which nothing behind here could write as JSON again."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is larger than any number of 64 bits")
    return number


def _require_whole_pairs(value: Json) -> None:
    """What the agents' serialisers could only replace by a question mark is refused where it comes in."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError(
            "the body is no sound JSON: a text in it has half a surrogate pair (\\ud800 to \\udfff)"
        ) from None


def _deeper(value: Json, levels: int) -> bool:
    """Whether something is nested deeper than that: later encoders must never meet Python's recursion limit."""
    layer: list[Json] = [value]
    for _ in range(levels + 1):
        below: list[Json] = []
        for one in layer:
            if isinstance(one, dict):
                below.extend(one.values())
            elif isinstance(one, list):
                below.extend(one)
        if not below:
            return False
        layer = below
    return True


class JsonResponse(Response):
    """A body of plain values."""

    media_type = "application/json"

    @override
    def render(self, content: object) -> bytes:
        return encode(content)


class JsonRequest(Request):
    """A request whose body is strict JSON, or 422."""

    @override
    async def json(self) -> Json:
        try:
            body = await self.body()
            value = decode(body, "the body")
            if _SURROGATE.search(body):
                _require_whole_pairs(value)
            return value
        except ValueError as error:
            raise HTTPException(422, str(error)) from None


class JsonRoute(APIRoute):
    """A route that reads bodies as `JsonRequest` does."""

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(JsonRequest(request.scope, request.receive))

        return strict
