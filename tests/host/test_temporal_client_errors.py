"""What Temporal's client says, as it was seen to say it, told in words that say what to do."""

import pytest
from temporalio.service import TLSConfig

from agentvisor.host.temporal_client_address import Connection
from agentvisor.host.temporal_client_errors import not_connected

ENDED = (
    "Failed client connect: `get_system_info` call error after connection: Status {{ code: Unknown, message: "
    '"transport error", source: Some(tonic::transport::Error(Transport, hyper::Error({}))) }}'
)


@pytest.mark.parametrize(
    "seen",
    [
        'Io, Custom { kind: UnexpectedEof, error: "peer closed connection without sending TLS close_notify" }',
        "Io, Os { code: 104, kind: ConnectionReset }",
        "Io, Os { code: 103, kind: ConnectionAborted }",
        "Io, Custom { kind: BrokenPipe, error: stream closed because of a broken pipe }",
        'Io, Custom { kind: InvalidData, error: "received fatal alert: CertificateRequired" }',
        "Canceled, connection closed",
    ],
)
def test_a_connection_that_the_server_ends_is_told_alike_whatever_the_client_saw_of_it(seen: str) -> None:
    error = RuntimeError(ENDED.format(seen))
    told = not_connected(Connection("there:7233", "default", tls=TLSConfig()), error)
    assert "it may want a client certificate" in str(told)
    if "CertificateRequired" not in seen:
        told = not_connected(Connection("there:7233", "default"), error)
        assert "it may want TLS" in str(told)


def test_where_nothing_listens_what_to_do_is_all_that_is_said() -> None:
    seen = (
        "Failed client connect: Server connection error: tonic::transport::Error(Transport, ConnectError(ConnectError("
        '"tcp connect error", 127.0.0.1:7233, Os { code: 111, kind: ConnectionRefused, message: "refused" })))'
    )
    told = str(not_connected(Connection("127.0.0.1:7233", "default"), RuntimeError(seen)))
    assert "`agentvisor dev` has one of its own" in told
    assert "tonic" not in told


def test_a_reason_that_is_not_known_is_told_with_what_the_client_said() -> None:
    told = str(not_connected(Connection("there:7233", "default"), RuntimeError("tcp connect error: HostUnreachable")))
    assert "it is out of reach" in told
    assert "HostUnreachable" in told
