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
