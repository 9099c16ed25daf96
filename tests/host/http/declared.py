"""Holds answers to what /openapi.json declares for their routes."""

from __future__ import annotations

import inspect
import json
import re
from functools import cache
from typing import Any

import httpx
import jsonschema_rs

from agentvisor.host.callers import Callers
from agentvisor.host.config import Config
from agentvisor.host.http.app import create_app


@cache
def description() -> dict[str, Any]:
    """What the app says of itself."""
    config = Config()
    # What its routes need of a host, they ask for when they are called.
    parts: dict[str, Any] = {
        name: None for name, one in inspect.signature(create_app).parameters.items() if one.default is one.empty
    }
    return create_app(**parts | {"config": config, "callers": Callers(config.http), "version": "1.2.3"}).openapi()


@cache
def _validators() -> list[tuple[str, re.Pattern[str], str, Any]]:
    """Method, path, route and validator; a path that is written out comes before one with a name in its place."""
    described = description()
    found: list[tuple[str, re.Pattern[str], str, Any]] = []
    for path in sorted(described["paths"], key=lambda one: one.replace("{", "~")):
        # A key of thread state, an interrupt's id and a namespace may have slashes.
        wide = re.sub(r"\\{(key|interrupt_id|namespace)\\}", ".+", re.escape(path))
        pattern = re.compile(re.sub(r"\\{\w+\\}", "[^/]+", wide))
        for method, operation in described["paths"][path].items():
            content = operation["responses"].get("200", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema")
            check = None
            if schema:
                check = jsonschema_rs.validator_for(
                    {**schema, "components": described["components"]}, validate_formats=True
                )
            found.append((method.upper(), pattern, f"{method.upper()} {path}", check))
    return found


def route_of(method: str, path: str) -> tuple[str, Any]:
    """The route that answers, and what its JSON has to look like; None: anything, or it is no JSON."""
    for of, pattern, route, check in _validators():
        if of == method and pattern.fullmatch(path):
            return route, check
    return "", None


def check_answer(method: str, path: str, response: httpx.Response) -> None:
    """Fail unless a whole response is as declared."""
    route, check = route_of(method, path)
    if check is None or response.status_code != 200:
        return
    data = json.loads(response.content)
    wrong = [f"{'/'.join(map(str, one.instance_path))}: {one.message[:300]}" for one in check.iter_errors(data)]
    assert not wrong, f"{route} does not answer as it is declared in host/http/replies.py: {wrong[:5]}"


async def check_as_it_comes(response: httpx.Response) -> None:
    """A hook of httpx: every answer of a route that declares one, whatever the test is about."""
    method, path = response.request.method, response.request.url.path
    if response.status_code == 200 and route_of(method, path)[1] is not None:
        await response.aread()
        check_answer(method, path, response)
