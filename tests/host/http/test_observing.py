"""Requests are told by the template of their route: no id becomes a span's name."""

from typing import Any

import pytest

from agentvisor.host.http.observing import route_of
from agentvisor.host.peer_feed import PATH


@pytest.mark.parametrize("thread, run", [("t", "r"), ("a%2Fb", "1")])
def test_a_hosts_question_for_a_tape_has_a_template_as_all_others(thread: str, run: str) -> None:
    scope: dict[str, Any] = {"type": "http", "path": f"{PATH}{thread}/{run}"}
    assert route_of(scope) == f"{PATH}{{thread_id}}/{{run_id}}"


def test_what_no_route_answers_has_none() -> None:
    assert route_of({"type": "http", "path": "/thread-of-somebody"}) == ""
