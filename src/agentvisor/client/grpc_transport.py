"""Outside a guest: requests to a running host over gRPC. Never imported inside one."""

from __future__ import annotations

import itertools
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future
from http.client import HTTPException
from typing import NoReturn, cast
from urllib.parse import urlsplit

import grpc

from agentvisor.core.errors import (
    AgentVisorError,
    Internal,
    InvalidInput,
    PermissionRefused,
    Unavailable,
    ValueTooLarge,
)
from agentvisor.protocol.frames import MAX_FRAME
from agentvisor.protocol.v1.guest_pb2_grpc import StoreHostStub
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

_OPTIONS = [
    ("grpc.max_receive_message_length", MAX_FRAME),
    ("grpc.max_send_message_length", MAX_FRAME),
    # A host that is frozen shows within seconds.
    ("grpc.keepalive_time_ms", 2000),
    ("grpc.http2.ping_timeout_ms", 3000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # We know better which requests may be repeated.
    ("grpc.enable_retries", 0),
]
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ANY_ADDRESS = ("", "0.0.0.0", "::", "[::]")  # noqa: S104 (recognised, not bound)
_INFO_SECONDS = 5.0
_RECONNECT_SECONDS = 10.0
"""How long a repeated request waits for the host to be there again."""

_REPEATABLE = frozenset({"put", "put_writes", "get", "list", "get_blobs", "delete_thread", "project"})
"""Requests that may reach the host twice and have one effect."""

_Metadata = tuple[tuple[str, str], ...]


class GrpcTransport:
    """One gRPC connection to a host; a `Transport`."""

    def __init__(self, address: str, api_key: str | None) -> None:
        options = [*_OPTIONS]
        if _host_of(address) in _LOOPBACK:
            options.append(("grpc.enable_http_proxy", 0))
        self._address = address
        self._channel = grpc.insecure_channel(address, options=options)
        self._stub = StoreHostStub(self._channel)
        self._metadata: _Metadata = () if api_key is None else (("authorization", f"Bearer {api_key}"),)
        self._lock = threading.Lock()
        self._closed = False
        self._writes: set[Future[StoreReply]] = set()
        """Pending writes that were sent and not answered."""

    @classmethod
    def connect(cls, endpoint: str, api_key: str | None) -> GrpcTransport:
        """Ask the host at an HTTP address for its gRPC address; `Unavailable` where none answers."""
        return cls(find_grpc(endpoint, api_key), api_key)

    def submit(self, request: StoreRequest) -> Future[StoreReply]:
        """Send a request; one that may be repeated is sent once more where the connection was lost."""
        future: Future[StoreReply] = Future()
        # Running, so that nobody can cancel it: the host acts on the request whoever still waits for it.
        future.set_running_or_notify_cancel()
        kind = request.WhichOneof("kind")
        with self._lock:
            # Calls over gRPC may overtake each other, and a checkpoint must not overtake the writes before it.
            before = list(self._writes) if kind == "put" else []
            if kind == "put_writes":
                self._writes.add(future)
                future.add_done_callback(self._forget_writes)
        _after(before, lambda: self._send(request, future, is_first=kind in _REPEATABLE))
        return future

    def _forget_writes(self, future: Future[StoreReply]) -> None:
        with self._lock:
            self._writes.discard(future)

    def close(self) -> None:
        """End the connection; calls that were not answered fail with `Unavailable`."""
        self._closed = True
        self._channel.close()

    def _send(self, request: StoreRequest, future: Future[StoreReply], *, is_first: bool) -> None:
        if self._closed:
            future.set_exception(Unavailable("the connection to the host was closed"))
            return
        try:
            call = self._stub.Call.future(
                request,
                metadata=self._metadata,
                wait_for_ready=not is_first,
                timeout=None if is_first else _RECONNECT_SECONDS,
            )
        except ValueError as error:  # closed meanwhile
            future.set_exception(Unavailable(f"the connection to the host was closed: {error}"))
            return

        def done(_: object) -> None:
            if call.code() is grpc.StatusCode.OK:
                future.set_result(call.result())
            elif call.code() is grpc.StatusCode.UNAVAILABLE and is_first and not self._closed:
                self._send(request, future, is_first=False)
            else:
                future.set_exception(self._error(call.code(), call.details()))

        call.add_done_callback(done)

    def _error(self, code: grpc.StatusCode, details: str | None) -> AgentVisorError:
        said = f"{details or code.name.lower()} ({self._address})"
        match code:
            case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.DEADLINE_EXCEEDED | grpc.StatusCode.CANCELLED:
                return Unavailable(f"the AgentVisor host does not answer: {said}")
            case grpc.StatusCode.UNAUTHENTICATED | grpc.StatusCode.PERMISSION_DENIED:
                return PermissionRefused(f"the AgentVisor host refuses the key (AGENTVISOR_API_KEY): {said}")
            case grpc.StatusCode.RESOURCE_EXHAUSTED:
                return ValueTooLarge(
                    f"the message is over the limit of {MAX_FRAME} bytes: {said}", limit=str(MAX_FRAME)
                )
            case grpc.StatusCode.INVALID_ARGUMENT:
                return InvalidInput(said)
            case _:
                return Internal(f"the AgentVisor host failed: {said}")


def _after(futures: list[Future[StoreReply]], action: Callable[[], None]) -> None:
    """Act once all have ended, however they did: now, or in the thread that ends the last."""
    left = itertools.count(len(futures), -1)
    if next(left) == 0:
        action()
        return

    def one_less(_: object) -> None:
        if next(left) == 0:
            action()

    for future in futures:
        future.add_done_callback(one_less)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The key is for the address that was given, not for one that it names."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def find_grpc(endpoint: str, api_key: str | None) -> str:
    """The address that the host's `/info` gives; `Unavailable` that says what to start where none answers."""
    url = urlsplit(endpoint)
    if url.scheme != "http" or not url.hostname:
        raise InvalidInput(f"AGENTVISOR_ENDPOINT is {endpoint!r}: it must be like http://127.0.0.1:8090")
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
    if url.hostname in _LOOPBACK:
        handlers.append(urllib.request.ProxyHandler({}))
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    request = urllib.request.Request(endpoint.rstrip("/") + "/info", headers=headers)  # noqa: S310 (http, checked above)
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=_INFO_SECONDS) as response:
            info = json.load(response)
    except urllib.error.HTTPError as error:
        _refuse(endpoint, error)
    except (OSError, HTTPException, ValueError) as error:
        raise Unavailable(
            f"no AgentVisor host answers at {endpoint} ({_reason(error)}): start one with `agentvisor dev`, "
            "or set AGENTVISOR_ENDPOINT to where one runs"
        ) from error
    address = cast("dict[str, object]", info).get("grpc") if isinstance(info, dict) else None
    if not isinstance(address, str) or ":" not in address:
        raise Unavailable(f"what answers at {endpoint} is not an AgentVisor host, or one without gRPC")
    host, _, port = address.rpartition(":")
    if host not in _ANY_ADDRESS:
        return address
    return f"[{url.hostname}]:{port}" if ":" in url.hostname else f"{url.hostname}:{port}"


def _refuse(endpoint: str, error: urllib.error.HTTPError) -> NoReturn:
    with error:
        if error.code in {401, 403}:
            raise PermissionRefused(
                f"the AgentVisor host at {endpoint} refuses the key: set AGENTVISOR_API_KEY"
            ) from error
        raise Unavailable(f"what answers at {endpoint} is not an AgentVisor host: HTTP {error.code}") from error


def _reason(error: Exception) -> str:
    return str(error.reason if isinstance(error, urllib.error.URLError) else error) or type(error).__name__


def _host_of(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")
