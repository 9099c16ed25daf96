"""No route comes without a row in the table of owners, and none gets at threads but by the caller's own door."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIWebSocketRoute, _IncludedRouter
from starlette.routing import BaseRoute, Mount, Route
from tests.host.http.conftest import app_without_temporal, config_in
from tests.host.http.route_table import TABLE

from agentvisor.host.http.services import _services

OF_THE_FRAMEWORK = {"GET /openapi.json", "GET /docs", "GET /docs/oauth2-redirect", "GET /redoc"}


def routes(app: FastAPI) -> Iterator[BaseRoute]:
    waiting = [*app.routes]
    while waiting:
        route = waiting.pop()
        if isinstance(route, _IncludedRouter):
            assert not route.include_context.prefix, "the paths below would be others"
            waiting += route.original_router.routes
        else:
            assert not isinstance(route, Mount), f"{route} leads to routes that nobody has looked at"
            yield route


def named(route: BaseRoute) -> Iterator[str]:
    if isinstance(route, APIWebSocketRoute):
        yield f"WS {route.path}"
        return
    assert isinstance(route, Route | APIRoute), f"a kind of route that nobody has looked at: {route!r}"
    for method in sorted((route.methods or set()) - {"HEAD"}):
        yield f"{method} {route.path.replace(':path}', '}')}"


def served(dependant: Dependant) -> bool:
    return dependant.call is _services or any(map(served, dependant.dependencies))


@pytest.fixture
async def app(tmp_path: Path) -> FastAPI:
    return await app_without_temporal(config_in(tmp_path))


def test_every_route_has_its_row_in_the_table_of_owners(app: FastAPI) -> None:
    names = {name for route in routes(app) for name in named(route)}
    assert names - TABLE.keys() == set(), "add them to tests/host/http/route_table.py"
    assert TABLE.keys() - names == set(), "they are gone"


def test_a_route_has_the_services_of_its_caller_and_no_others(app: FastAPI) -> None:
    without = set[str]()
    for route in routes(app):
        if not (isinstance(route, APIRoute | APIWebSocketRoute) and served(route.dependant)):
            without |= {*named(route)}
    assert without == OF_THE_FRAMEWORK


def test_nobody_takes_the_services_from_the_app() -> None:
    """They are the operator's there."""
    source = Path(__file__).parents[3] / "src" / "agentvisor"
    users = {path.name for path in source.rglob("*.py") if "state.services" in path.read_text()}
    assert users == {"app.py", "services.py"}


async def test_a_request_that_came_by_no_check_gets_nothing(app: FastAPI) -> None:
    """However a route may come to be reached: without a caller there is no door."""
    app.user_middleware.clear()
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for path in ("/threads/t", "/info", "/interrupts"):
            assert (await client.get(path)).status_code == 500
