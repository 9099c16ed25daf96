"""Every route that answers with JSON declares what it looks like."""

import json
from typing import Any

import httpx
import pytest
from tests.host.http.declared import check_answer, description, route_of

from agentvisor.host.http.replies import ANY, PART, REPLIES

JSON = "application/json"


def answers() -> dict[str, Any]:
    """The schema of each route's answer in JSON."""
    return {
        f"{method.upper()} {path}": operation["responses"]["200"]["content"][JSON]["schema"]
        for path, methods in description()["paths"].items()
        for method, operation in methods.items()
        if JSON in operation["responses"].get("200", {}).get("content", {})
    }


def test_every_route_that_answers_with_json_has_its_row() -> None:
    assert answers().keys() == REPLIES.keys()


def test_only_what_an_agent_gives_may_be_anything() -> None:
    assert {route for route, schema in answers().items() if not schema} == {
        route for route, reply in REPLIES.items() if reply is ANY
    }
    waits = {route.rpartition("/")[2] for route, reply in REPLIES.items() if reply is ANY}
    assert waits == {"wait", "join"}


def test_an_answer_has_the_fields_that_are_declared_and_no_others() -> None:
    schemas = description()["components"]["schemas"]
    parts = {name for name, one in schemas.items() if PART in one}
    assert parts == {f"{one}Selected" for one in ("Assistant", "Thread", "ThreadState", "Run", "Cron")}
    for name in parts:
        assert schemas[name]["properties"] == schemas[schemas[name][PART]]["properties"]
        assert "required" not in schemas[name]
        assert schemas[name]["additionalProperties"] is False


@pytest.mark.parametrize("path", ["/threads/t/thread-state/a/b", "/threads/t/thread-state/k"])
def test_an_answer_that_is_not_as_declared_is_found(path: str) -> None:
    good = {"scope": "", "key": "k", "revision": 1}
    check_answer("PUT", path, httpx.Response(200, json=good))
    for bad in ({**good, "more": 1}, {"scope": "", "key": "k"}, {**good, "revision": "1"}, None):
        with pytest.raises(AssertionError, match="thread-state"):
            check_answer("PUT", path, httpx.Response(200, content=json.dumps(bad)))
    assert route_of("POST", "/threads/search")[0] == "POST /threads/search"
    assert route_of("POST", "/runs/crons/search")[0] == "POST /runs/crons/search"
