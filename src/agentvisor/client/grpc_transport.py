"""Outside a guest: requests to a running host over gRPC. Never imported inside one."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

import grpc

from agentvisor.client.find_host import find_grpc
from agentvisor.client.http import LOOPBACK
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
_RECONNECT_SECONDS = 10.0
"""How long a lost request waits for the host to be there again."""
_RETRY_SECONDS = 0.2

_REPEATABLE = frozenset(
    {
        "put",
        "put_writes",
        "put_part",
        "get_part",
        "get",
        "list",
        "get_blobs",
        "delta_history",
        "delete_thread",
        "delete_for_runs",
        "prune",
        "copy_thread",
        "project",
        "change_thread_state",
        "get_thread_state",
        "list_thread_state",
        "items",
    }
)
"""Requests that may reach the host twice and have one effect."""

_AHEAD = {"put_part": ("put", "put_writes", "change_thread_state"), "put_writes": ("put",)}
"""Calls over gRPC may overtake each other: a checkpoint must not overtake writes before it, and nothing its parts."""

_Metadata = tuple[tuple[str, str], ...]


class GrpcTransport:
    """A gRPC connection to a host, made again where the host comes back elsewhere; a `Transport`."""

    def __init__(self, find: Callable[[], str], api_key: str | None) -> None:
        self._find = find
        self._metadata: _Metadata = () if api_key is None else (("authorization", f"Bearer {api_key}"),)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._open: dict[str, set[Future[StoreReply]]] = {kind: set() for kind in _AHEAD}
        """What was sent and not answered, of the kinds that others must not overtake."""
        self._host = _Host(find())

    @classmethod
    def connect(cls, endpoint: str, api_key: str | None) -> GrpcTransport:
        """Connect to the host whose HTTP address is `endpoint`; `Unavailable` where none answers."""
        return cls(lambda: find_grpc(endpoint, api_key), api_key)

    def submit(self, request: StoreRequest) -> Future[StoreReply]:
        """Send a request; one that may be repeated is sent again where the connection was lost."""
        future: Future[StoreReply] = Future()
        # Running, so that nobody can cancel it: the host acts on the request whoever still waits for it.
        future.set_running_or_notify_cancel()
        kind = request.WhichOneof("kind")
        with self._lock:
            before = [one for ahead, behind in _AHEAD.items() if kind in behind for one in self._open[ahead]]
            if kind in self._open:
                self._open[kind].add(future)
        if kind in self._open:
            future.add_done_callback(lambda _: self._forget(kind, future))
        _after(before, lambda: self._send(request, future))
        return future

    def close(self) -> None:
        """End the connection; calls that were not answered fail with `Unavailable`."""
        self._closed.set()
        self._host.channel.close()

    def _forget(self, kind: str, future: Future[StoreReply]) -> None:
        with self._lock:
            self._open[kind].discard(future)

    def _send(self, request: StoreRequest, future: Future[StoreReply]) -> None:
        host = self._host
        try:
            call = host.stub.Call.future(request, metadata=self._metadata)
        except ValueError:  # the channel was closed
            future.set_exception(_closed())
            return

        def done(_: object) -> None:
            if call.code() is grpc.StatusCode.OK:
                future.set_result(call.result())
            elif call.code() is grpc.StatusCode.UNAVAILABLE and request.WhichOneof("kind") in _REPEATABLE:
                # In a thread of its own: gRPC's must not wait.
                threading.Thread(target=self._repeat, args=(request, future), daemon=True).start()
            else:
                future.set_exception(_error(host.address, call.code(), call.details()))

        call.add_done_callback(done)

    def _repeat(self, request: StoreRequest, future: Future[StoreReply]) -> None:
        """Look for the host, which may have started anew on another port, until it answers or the time is over."""
        until = time.monotonic() + _RECONNECT_SECONDS
        while True:
            error: AgentVisorError = _closed()
            if not self._closed.is_set():
                try:
                    host = self._current_host()
                    left = max(until - time.monotonic(), 0.1)
                    reply = host.stub.Call(request, metadata=self._metadata, timeout=left)
                except Unavailable as gone:
                    error = gone
                except grpc.RpcError as failed:
                    error = _error(self._host.address, failed.code(), failed.details())
                except ValueError:
                    pass  # the channel was closed
                else:
                    future.set_result(reply)
                    return
            if not isinstance(error, Unavailable) or time.monotonic() >= until or self._closed.wait(_RETRY_SECONDS):
                future.set_exception(error)
                return

    def _current_host(self) -> _Host:
        address = self._find()
        with self._lock:
            if address != self._host.address:
                # The old channel is not closed: calls on it shall see that their host is gone, and be repeated.
                self._host = _Host(address)
            return self._host


class _Host:
    """A channel to one address."""

    def __init__(self, address: str) -> None:
        options = [*_OPTIONS]
        if _host_of(address) in LOOPBACK:
            options.append(("grpc.enable_http_proxy", 0))
        self.address = address
        self.channel = grpc.insecure_channel(address, options=options)
        self.stub = StoreHostStub(self.channel)


def _closed() -> Unavailable:
    return Unavailable("the connection to the host was closed")


def _error(address: str, code: grpc.StatusCode, details: str | None) -> AgentVisorError:
    said = f"{details or code.name.lower()} ({address})"
    match code:
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.DEADLINE_EXCEEDED | grpc.StatusCode.CANCELLED:
            return Unavailable(f"the AgentVisor host does not answer: {said}")
        case grpc.StatusCode.UNAUTHENTICATED | grpc.StatusCode.PERMISSION_DENIED:
            return PermissionRefused(f"the AgentVisor host refuses the key (AGENTVISOR_API_KEY): {said}")
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return ValueTooLarge(f"the message is over the limit of {MAX_FRAME} bytes: {said}", limit=str(MAX_FRAME))
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


def _host_of(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")
