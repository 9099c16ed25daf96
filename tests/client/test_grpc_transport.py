"""Outside a guest: the host is found by its HTTP address, asked for a key, and found again when it comes back."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.client.hosts import answering_info, listening, serving_grpc
from tests.support.line import line_to

from agentvisor.client.find_host import find_grpc
from agentvisor.client.grpc_transport import GrpcTransport
from agentvisor.core.errors import InvalidInput, PermissionRefused, Unavailable
from agentvisor.protocol.v1.store_pb2 import EffectRequest, GetCheckpoint, PutCheckpoint, StoreReply, StoreRequest

GET = StoreRequest(thread_id="t", get=GetCheckpoint())


def nothing(_: str | None, __: StoreRequest) -> StoreReply:
    return StoreReply()


def test_where_nothing_answers_the_error_says_what_to_start() -> None:
    with answering_info({}) as endpoint:
        pass
    with pytest.raises(Unavailable, match="agentvisor dev") as caught:
        GrpcTransport.connect(endpoint, None)
    assert endpoint in str(caught.value)


@pytest.mark.parametrize("info", [{}, [], "text", {"grpc": None}, {"grpc": 1}, {"grpc": "nowhere"}])
def test_something_else_at_the_address_is_told_apart(info: object) -> None:
    with answering_info(info) as endpoint, pytest.raises(Unavailable, match="not an AgentVisor host"):
        find_grpc(endpoint, None)
    with answering_info(info, status=500) as endpoint, pytest.raises(Unavailable, match="HTTP 500"):
        find_grpc(endpoint, None)


def test_the_key_does_not_follow_a_redirect() -> None:
    with (
        answering_info({"grpc": "127.0.0.1:1"}, key="k") as other,
        answering_info(f"{other}/info", status=302) as endpoint,
        pytest.raises(Unavailable, match="HTTP 302"),
    ):
        find_grpc(endpoint, "k")


@pytest.mark.parametrize("endpoint", ["", "127.0.0.1:8090", "https://host", "ftp://host", "http://", "file:///etc"])
def test_an_address_that_cannot_be_one_is_refused(endpoint: str) -> None:
    with pytest.raises(InvalidInput, match="AGENTVISOR_ENDPOINT"):
        find_grpc(endpoint, None)


@pytest.mark.parametrize("bound", ["0.0.0.0:7", "[::]:7", ":7"])
def test_a_host_that_listens_everywhere_is_reached_where_its_http_is(bound: str) -> None:
    with answering_info({"grpc": bound}) as endpoint:
        assert find_grpc(endpoint, None) == "127.0.0.1:7"


def test_proxies_are_for_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with listening(nothing) as endpoint:
        transport = GrpcTransport.connect(endpoint, None)
        assert transport.submit(GET).result(10) == StoreReply()
        transport.close()


def test_a_wrong_or_missing_key_is_refused_and_the_right_one_taken() -> None:
    with listening(nothing, "right") as endpoint:
        for wrong in (None, "wrong"):
            with pytest.raises(PermissionRefused, match="AGENTVISOR_API_KEY"):
                GrpcTransport.connect(endpoint, wrong)
        # A key that is good for HTTP and not for gRPC is refused there as well.
        address = find_grpc(endpoint, "right")
        for wrong in (None, "wrong", "right "):
            transport = GrpcTransport(lambda: address, wrong)
            with pytest.raises(PermissionRefused, match="AGENTVISOR_API_KEY"):
                transport.submit(GET).result(10)
            transport.close()
        transport = GrpcTransport.connect(endpoint, "right")
        assert transport.submit(GET).result(10) == StoreReply()
        transport.close()


def test_a_call_survives_a_host_that_comes_back_on_another_port() -> None:
    with ExitStack() as stack:
        info: dict[str, object] = {}
        endpoint = stack.enter_context(answering_info(info))
        with serving_grpc(nothing) as first:
            info["grpc"] = first
            transport = GrpcTransport.connect(endpoint, None)
            assert transport.submit(GET).result(10) == StoreReply()
        lost = transport.submit(StoreRequest(thread_id="t", put=PutCheckpoint()))
        info["grpc"] = stack.enter_context(serving_grpc(nothing))
        assert lost.result(15) == StoreReply()
        assert transport.submit(GET).result(10) == StoreReply()
        transport.close()


@pytest.mark.thorough
@pytest.mark.parametrize("silently", [False, True], ids=["closed", "without a word"])
def test_a_connection_that_was_dropped_between_two_puts_is_made_again(*, silently: bool) -> None:
    # langgraph#5675, #7304: what lies between closes what is idle, and a pool hands out the dead connection.
    put = StoreRequest(thread_id="t", put=PutCheckpoint())
    came: list[str | None] = []

    def keep(_: str | None, request: StoreRequest) -> StoreReply:
        came.append(request.WhichOneof("kind"))
        return StoreReply()

    with serving_grpc(keep) as address, line_to(address) as line:
        transport = GrpcTransport(lambda: line.address, None)
        for _ in range(3):
            assert transport.submit(put).result(20) == StoreReply()
            line.drop(silently=silently)
        assert transport.submit(GET).result(20) == StoreReply()
        transport.close()
    assert came == ["put", "put", "put", "get"]


def test_a_request_that_must_not_happen_twice_is_not_sent_twice() -> None:
    with answering_info({}) as endpoint, serving_grpc(nothing) as address:
        transport = GrpcTransport(lambda: address, None)
        assert transport.submit(GET).result(10) == StoreReply()
    with pytest.raises(Unavailable):
        transport.submit(StoreRequest(thread_id="t", effect=EffectRequest(key="k"))).result(10)
    transport.close()
    del endpoint


def test_closing_ends_the_search_for_a_lost_host() -> None:
    with serving_grpc(nothing) as address:
        transport = GrpcTransport(lambda: address, None)
        assert transport.submit(GET).result(10) == StoreReply()
    lost = transport.submit(GET)
    transport.close()
    with pytest.raises(Unavailable):
        lost.result(5)


def test_grpc_is_not_imported_by_what_runs_in_a_guest() -> None:
    import agentvisor

    sources = [path.read_text() for path in (Path(agentvisor.__file__).parent / "client").glob("*.py")]
    assert sum("import grpc" in source for source in sources) == 1
