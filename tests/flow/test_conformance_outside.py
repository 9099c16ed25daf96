"""LangGraph's conformance suite outside any guest: an operator's key, a real host, real threads in Temporal."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from tests.flow.conftest import Project
from tests.langgraph_conformance import assert_conforms, assert_delta_history
from tests.support.host_process import HostProcess
from tests.support.temporal import free_ports

from agentvisor.core.errors import InvalidInput, PermissionRefused, Unavailable
from agentvisor.langgraph import AgentVisorCheckpointer

pytestmark = pytest.mark.flow

KEY = "an operator's key"


@pytest.fixture(scope="module")
def keyed_host(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[HostProcess]:
    """A host that asks for a key; it has no agents."""
    project = Project(tmp_path_factory.mktemp("keyed"), temporal, "zygote", {})
    host = project.host({"AGENTVISOR_HTTP_OPERATOR_KEY": KEY})
    try:
        yield host
    finally:
        host.stop()


async def test_langgraphs_own_suite_passes_with_an_operators_key(keyed_host: HostProcess) -> None:
    async def fresh_saver() -> AsyncGenerator[AgentVisorCheckpointer]:
        yield AgentVisorCheckpointer(endpoint=keyed_host.url, api_key=KEY)

    await assert_conforms(fresh_saver)
    await assert_delta_history(fresh_saver)


@pytest.mark.parametrize("key", [None, "", "wrong", "an operator's ke"])
def test_another_key_is_refused_and_nothing_is_written(key: str | None, keyed_host: HostProcess) -> None:
    thread = str(uuid4())
    saver = AgentVisorCheckpointer(endpoint=keyed_host.url, api_key=key)
    with pytest.raises(PermissionRefused, match="AGENTVISOR_API_KEY"):
        saver.put({"configurable": {"thread_id": thread}}, empty_checkpoint(), {}, {})
    answer = httpx.get(f"{keyed_host.url}/threads/{thread}", headers={"Authorization": f"Bearer {KEY}"})
    assert answer.status_code == 404


@pytest.mark.parametrize("key", ["schlüssel", f"{KEY}\n"])
def test_a_key_that_no_header_can_carry_is_named(key: str, keyed_host: HostProcess) -> None:
    saver = AgentVisorCheckpointer(endpoint=keyed_host.url, api_key=key)
    with pytest.raises(InvalidInput, match="API key"):
        saver.get_tuple({"configurable": {"thread_id": "t"}})


def test_http_refuses_the_same_keys(keyed_host: HostProcess) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"x-api-key": "wrong"}):
        assert httpx.post(f"{keyed_host.url}/threads", json={}, headers=headers).status_code == 401
    assert httpx.post(f"{keyed_host.url}/threads", json={}, headers={"x-api-key": KEY}).status_code == 200


def test_where_nothing_listens_the_error_says_what_to_start(tmp_path: Path) -> None:
    endpoint = f"http://127.0.0.1:{free_ports(1)[0]}"
    saver = AgentVisorCheckpointer(endpoint=endpoint)
    with pytest.raises(Unavailable, match="`agentvisor dev`") as refused:
        saver.get_tuple({"configurable": {"thread_id": "t"}})
    assert endpoint in str(refused.value)
