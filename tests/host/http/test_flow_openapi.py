"""Requests generated from /openapi.json to every route: none breaks the host, and answers are as described.

OPENAPI_EXAMPLES says how many to each (make test-openapi), OPENAPI_ROUTE that only one is meant ("POST /runs"); they
are the same ones each time.
"""

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance
from tests.host.http.conftest import app_without_temporal, config_in

from agentvisor.host.app import Host
from agentvisor.protocol.exports import MEDIA_TYPE

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]

EXAMPLES = int(os.environ.get("OPENAPI_EXAMPLES", "3"))
ONLY = os.environ.get("OPENAPI_ROUTE", "")
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]
AGENTS = ("nothing", "plain", "asking", "failing")
"""Quick ones: what is generated does start runs."""
NEVER_END = ("/threads/{thread_id}/stream", "/threads/{thread_id}/stream/events")
"""Streams of whatever happens on a thread: they are as long as their reader stays."""
SECONDS = 60


@schemathesis.serializer(MEDIA_TYPE)
def thread_file(_context: schemathesis.SerializationContext, value: Any) -> bytes:
    """A thread's file is bytes: what is generated is none, and has to be refused as such."""
    return value if isinstance(value, bytes) else str(value).encode()


class Scene:
    """A thread with a run, which generated requests meet; a new one where it was deleted."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.Client(base_url=url, timeout=SECONDS)
        self.ids: dict[str, str] = {}

    def ready(self) -> dict[str, str]:
        """Ids that are there, by their names in paths."""
        if not self.ids or self._http.get(f"/threads/{self.ids['thread_id']}").status_code == 404:
            thread = self._http.post("/threads", json={}).json()["thread_id"]
            body = {"assistant_id": "asking", "input": {"count": 1}}
            self._http.post(f"/threads/{thread}/runs/wait", json=body).raise_for_status()
            run = self._http.get(f"/threads/{thread}/runs").json()[0]["run_id"]
            state = self._http.get(f"/threads/{thread}/state").json()
            self.ids = {
                "thread_id": thread,
                "run_id": run,
                "assistant_id": "asking",
                "checkpoint_id": state["checkpoint_id"],
                "interrupt_id": state["interrupts"][0]["id"],
            }
        return self.ids

    def close(self) -> None:
        self._http.close()


@pytest.fixture(scope="module")
def scene(host: Host) -> Iterator[Scene]:
    scene = Scene(host.url)
    yield scene
    scene.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def described(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    app = await app_without_temporal(config_in(tmp_path_factory.mktemp("described")))
    return app.openapi()


def met(case: Case, scene: Scene, how: int, agent: str) -> Case:
    """The request as it was generated, or so that it meets something: what is not there is refused before all else."""
    if how % 4 and case.path_parameters:
        case.path_parameters = {**case.path_parameters, **{
            name: value for name, value in scene.ready().items() if name in case.path_parameters
        }}  # fmt: skip
    if isinstance(case.body, dict) and "assistant_id" in case.body and how % 4:
        case.body = {**case.body, "assistant_id": agent}
    return case


def hold(operation: Any, scene: Scene) -> None:
    """Send what can be generated for one operation."""

    @given(case=operation.as_strategy(), how=st.integers(0, 3), agent=st.sampled_from(AGENTS))
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    def send(case: Case, how: int, agent: str) -> None:
        asked = met(case, scene, how, agent)
        try:
            response = asked.call(base_url=scene.url, timeout=SECONDS)
        except requests.Timeout:
            pytest.fail(f"no answer within {SECONDS} seconds: {asked.as_curl_command()}")
        asked.validate_response(response, checks=CHECKS)

    send()


async def operations(described: dict[str, Any]) -> list[Any]:
    schema = schemathesis.openapi.from_dict(described)
    return [one.ok() for one in schema.get_all_operations()]


@pytest.mark.timeout(120 + 60 * EXAMPLES)
async def test_no_request_breaks_the_host_and_every_answer_is_as_described(
    described: dict[str, Any], scene: Scene, subtests: pytest.Subtests
) -> None:
    for operation in await operations(described):
        if operation.path in NEVER_END or ONLY not in ("", operation.label):
            continue
        with subtests.test(operation.label):
            await asyncio.to_thread(hold, operation, scene)


async def test_every_route_says_what_its_errors_look_like(described: dict[str, Any]) -> None:
    error = {"$ref": "#/components/schemas/Error"}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            answer = operation["responses"]["4XX"]["content"]["application/json"]["schema"]
            assert answer == error, (method, path)
            assert "422" not in operation["responses"], (method, path)
