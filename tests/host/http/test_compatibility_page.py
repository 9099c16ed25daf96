"""docs/compatibility.md says what the code does."""

import re
from pathlib import Path

import httpx

from agentvisor.cli.exits import EXIT_CODES, RUN_FAILED
from agentvisor.host.http.run_create import _NOT_YET

PAGE = (Path(__file__).parents[3] / "docs" / "compatibility.md").read_text()


async def test_every_route_is_on_the_page_and_every_route_of_the_page_exists(api: httpx.AsyncClient) -> None:
    paths = (await api.get("/openapi.json")).json()["paths"]
    routes = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert set(re.findall(r"^\| `((?:GET|POST|PUT|PATCH|DELETE) [^`]+)` \|", PAGE, re.MULTILINE)) == routes


def test_every_field_that_is_refused_is_on_the_page() -> None:
    [refused] = re.findall(r"Refused in this version: (.*?)\n\n", PAGE, re.DOTALL)
    named = set(re.findall(r"`([a-z_]+)`", refused))
    assert {field.partition(".")[0] for field in _NOT_YET} <= named | {"stream_mode"}
    assert "stream modes" in refused


def test_every_exit_code_is_on_the_page() -> None:
    _, _, codes = PAGE.partition("## Exit codes")
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", codes, re.MULTILINE)} == {
        0,
        RUN_FAILED,
        *EXIT_CODES.values(),
    }
