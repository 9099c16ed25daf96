"""Every error has its status, and a body that all clients can read."""

import httpx
import pytest
from langgraph_sdk.errors import NotFoundError, _araise_for_status_typed
from tests.host.http.conftest import NAMES

from agentvisor.core.errors import ERRORS, AgentVisorError, NotFound, Unavailable
from agentvisor.host.http.errors import STATUS, error_response


def test_every_error_of_the_tree_has_its_status() -> None:
    assert set(STATUS) == set(ERRORS.values())


@pytest.mark.parametrize("error", ERRORS.values(), ids=lambda error: error.__name__)
def test_a_body_says_what_happened_to_clients_of_both_protocols(error: type[AgentVisorError]) -> None:
    response = error_response(error("what happened", field="here"))
    body = httpx.Response(response.status_code, content=bytes(response.body)).json()
    assert body == {
        "detail": "what happened",
        "message": "what happened",
        "code": error.code,
        "metadata": {"field": "here"},
    }


async def test_langgraphs_client_raises_the_message() -> None:
    response = error_response(NotFound("thread t does not exist"))
    request = httpx.Request("GET", "http://localhost/threads/t")
    with pytest.raises(NotFoundError, match="thread t does not exist"):
        await _araise_for_status_typed(
            httpx.Response(response.status_code, content=bytes(response.body), request=request)
        )


@pytest.mark.parametrize(
    "method, path, status, code",
    [
        ("GET", "/nothing/here", 404, "not_found"),
        ("DELETE", "/ok", 405, "method_not_allowed"),
        ("GET", "/threads/a%20b", 422, "invalid_input"),
        ("GET", "/threads/" + "a" * 256, 422, "invalid_input"),
        ("GET", "/threads/t/runs/a%20b", 422, "invalid_input"),
        ("GET", "/threads/t/history?limit=0", 422, "invalid_input"),
        ("GET", "/assistants/unknown", 404, "not_found"),
        ("POST", "/threads/t/runs/r/cancel?action=forget", 422, "invalid_input"),
    ],
)
async def test_a_request_that_fails_at_the_door_says_why(
    api: httpx.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    response = await api.request(method, path)
    body = response.json()
    assert (response.status_code, body["code"]) == (status, code)
    assert body["detail"] == body["message"] != ""


@pytest.mark.parametrize(
    "path, body, says",
    [
        ("/threads", {"ttl": 0}, "ttl: Input should be a JSON object, or Input should be greater than 0"),
        ("/threads", {"ttl": {"ttl": 1, "strategy": "x"}}, "ttl.strategy: Input should be 'delete' or 'keep_latest'; "),
        ("/threads/t/history", {"before": 5}, "before: Input should be a valid string, or Input should be a JSON obj"),
        ("/threads/t/state", {"values": 5}, "values: Input should be a JSON object, or Input should be a valid list"),
        ("/threads/t/runs", {"interrupt_before": "a"}, "interrupt_before: Input should be a valid list, or Input sho"),
        ("/threads/t/runs", {"command": 5}, "assistant_id: Field required; command: Input should be a JSON object"),
        ("/threads/prune", {"thread_ids": [5]}, "thread_ids.0: Input should be a valid string"),
        ("/runs/batch", [None], "0: Input should be a JSON object"),
    ],
)
async def test_a_field_that_takes_several_kinds_of_values_says_what_would_do(
    api: httpx.AsyncClient, path: str, body: object, says: str
) -> None:
    response = await api.post(path, json=body)
    assert response.status_code == 422
    detail = response.json()["detail"]
    assert says in detail
    assert not any(kind in detail for kind in ("[", "constrained", "TimeToLive"))


async def test_a_parameter_that_does_not_exist_is_passed_over_and_a_value_that_none_can_have_is_not(
    api: httpx.AsyncClient,
) -> None:
    assert (await api.get("/info", params={"of_a_proxy": "1"})).status_code == 200
    refused = await api.get("/threads/t/runs", params={"limit": "many", "of_a_proxy": "1"})
    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("limit: ")


def test_what_does_not_answer_now_may_be_tried_again() -> None:
    response = error_response(Unavailable("Temporal does not answer"))
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")


async def test_an_unknown_agent_is_refused_with_those_that_there_are(api: httpx.AsyncClient) -> None:
    response = await api.post("/threads/t/runs", json={"assistant_id": "nope"})
    assert response.status_code == 422
    assert response.json()["code"] == "unknown_agent"
    agents = ", ".join(sorted(NAMES))
    assert f"this host has {agents}" in response.json()["detail"]
