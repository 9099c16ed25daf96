"""Why no connection to Temporal came about, in words that say what to do; Temporal's client says it in Rust's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentvisor.core.errors import AgentVisorError, PermissionRefused, Unavailable
from agentvisor.host.temporal_client_address import Connection


@dataclass(frozen=True, slots=True)
class _Reason:
    signs: Sequence[str]
    """Any of these stands in the client's error."""
    says: str
    tls: bool | None = None
    """Said of connections with TLS, or without, only."""
    error: type[AgentVisorError] = Unavailable
    is_all: bool = False
    """What Temporal's client says adds nothing to it."""


_ENDED = ("Canceled", "Cancelled", "BrokenPipe", "ConnectionReset", "ConnectionAborted", "UnexpectedEof")
"""The server ends the connection while the client asks its first question: which of these it sees is a race."""

_REASONS = (
    _Reason(
        ("UnknownIssuer", "CaUsedAsEndEntity"),
        "its certificate is signed by nobody whom this host trusts: set temporal.tls.ca_file "
        "(TEMPORAL_TLS_SERVER_CA_CERT_PATH) to the PEM file of the authority that signed it",
    ),
    _Reason(
        ("NotValidForName",),
        "its certificate is for another name than this address: set temporal.tls.server_name "
        "(TEMPORAL_TLS_SERVER_NAME) to the name in it",
    ),
    _Reason(
        ("certificate expired", "Expired", "NotValidYet"),
        "its certificate has expired, or does not count yet: renew it, or set this machine's clock",
    ),
    _Reason(
        ("KeyMismatch", "PrivateKeyParseError", "CertificateParseError"),
        "this host's own certificate and its private key do not go together, or are no PEM: see temporal.tls.cert_file "
        "and temporal.tls.key_file (TEMPORAL_TLS_CLIENT_CERT_PATH, TEMPORAL_TLS_CLIENT_KEY_PATH)",
    ),
    _Reason(
        ("InvalidContentType",),
        "it does not speak TLS, and this host does: leave out temporal.tls and the API key, or give the address of a "
        "server with TLS",
        tls=True,
    ),
    _Reason(
        ("Unauthenticated", "PermissionDenied"),
        "it lets nobody in with what this host shows: see that the API key (temporal.api_key, TEMPORAL_API_KEY) or the "
        "client certificate (temporal.tls) is of this namespace, and has not expired",
        error=PermissionRefused,
    ),
    _Reason(
        (*_ENDED, "CertificateRequired"),
        "it ended the connection: it may want a client certificate, and one that it knows (temporal.tls.cert_file and "
        "temporal.tls.key_file; TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH)",
        tls=True,
    ),
    _Reason(
        (*_ENDED, "h2 protocol error", "FRAME_SIZE_ERROR"),
        "it ended the connection: it may want TLS (temporal.tls.enabled: true, or TEMPORAL_TLS=true), or speak no gRPC",
        tls=False,
    ),
    _Reason(("dns error",), "there is no such name: is temporal.address (TEMPORAL_ADDRESS) right?"),
    _Reason(
        ("ConnectionRefused",),
        "nothing listens there: start it, or give its address (temporal.address, TEMPORAL_ADDRESS); `agentvisor dev` "
        "has one of its own",
        is_all=True,
    ),
    _Reason(
        ("tcp connect error",), "it is out of reach: start it, or give its address (temporal.address, TEMPORAL_ADDRESS)"
    ),
)
"""The first that fits is told."""

_OTHERWISE = _Reason((), "start it, or give its address (temporal.address, TEMPORAL_ADDRESS)")


def not_connected(connection: Connection, error: Exception) -> AgentVisorError:
    """The error to raise for one of Temporal's client."""
    text = str(error)
    reason = next((one for one in _REASONS if _fits(one, text, connection)), _OTHERWISE)
    return _said(connection, reason.error, reason.says, "" if reason.is_all else f" ({text})")


def no_answer(connection: Connection, seconds: float) -> AgentVisorError:
    """The error where something listens and says nothing."""
    return _said(
        connection,
        Unavailable,
        f"it did not answer within {seconds:g} s: is it Temporal's gRPC end, and well? "
        "(temporal.address, TEMPORAL_ADDRESS)",
        "",
    )


def _said(connection: Connection, kind: type[AgentVisorError], says: str, detail: str) -> AgentVisorError:
    passed = ", ".join(connection.passed_over)
    note = (
        f". {passed} did not count, because temporal.address is set: set temporal.profile too, or give the address as "
        "TEMPORAL_ADDRESS"
        if passed
        else ""
    )
    return kind(f"no Temporal for us at {connection.address}: {says}{note}{detail}", address=connection.address)


def _fits(reason: _Reason, text: str, connection: Connection) -> bool:
    return reason.tls in (None, connection.tls is not None) and any(sign in text for sign in reason.signs)
