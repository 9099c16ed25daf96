"""Which way a process takes to the host, and with which limits."""

import pytest
from tests.client.hosts import answering_info, listening, over_socketpair
from tests.client.store_double import StoreDouble

from agentvisor.client import connection, socketpair
from agentvisor.client.connection import connect, limits_of, own_thread
from agentvisor.client.grpc_transport import GrpcTransport
from agentvisor.core.errors import InvalidInput, PermissionRefused, Unavailable
from agentvisor.protocol.blobs import Limits
from agentvisor.protocol.v1.guest_pb2 import AgentTask


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_connections", {})
    monkeypatch.setattr(socketpair, "_own", [])
    for name in (connection.ENDPOINT, connection.API_KEY, connection.THREAD_ID, socketpair.CHANNEL_FD):
        monkeypatch.delenv(name, raising=False)


def test_in_an_agent_process_the_channel_is_taken_with_the_limits_of_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    with over_socketpair(StoreDouble(), AgentTask(max_value_bytes=7, patch_chain=3)) as channel:
        monkeypatch.setenv(socketpair.CHANNEL_FD, str(channel._socket.fileno()))
        monkeypatch.setattr(socketpair, "_own", [channel])
        one = connect()
        assert one.transport is channel
        assert one.limits == Limits(patch_chain=3, max_value_bytes=7)
        assert connect() is one


def test_outside_the_endpoint_is_an_argument_or_a_variable_and_the_connection_is_made_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with listening(StoreDouble(), "key") as endpoint:
        monkeypatch.setenv(connection.ENDPOINT, endpoint)
        with pytest.raises(PermissionRefused):
            connect()
        monkeypatch.setenv(connection.API_KEY, "key")
        one = connect()
        assert isinstance(one.transport, GrpcTransport)
        assert connect(endpoint) is one
        assert connect(endpoint, "key") is one
        one.transport.close()


def test_a_host_that_was_not_there_is_looked_for_again() -> None:
    with answering_info({}) as endpoint:
        pass
    for _ in range(2):
        with pytest.raises(Unavailable):
            connect(endpoint)


def test_limits_that_the_host_does_not_give_are_the_defaults() -> None:
    assert limits_of(AgentTask()) == Limits()
    assert limits_of(AgentTask(max_inline_value_bytes=9)).max_stored_bytes == 9
    assert limits_of(AgentTask(patch_chain=0)).patch_chain == 0, "storage.patch_chain: 0 stores no differences"


def test_the_own_thread_is_checked_like_any_other() -> None:
    assert own_thread({}) is None
    assert own_thread({connection.THREAD_ID: ""}) is None
    assert own_thread({connection.THREAD_ID: "t"}) == "t"
    with pytest.raises(InvalidInput):
        own_thread({connection.THREAD_ID: "no spaces"})
