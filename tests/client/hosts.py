"""The two real ways to a host, each with a store at its other end: a socketpair, and gRPC found over HTTP."""

import asyncio
import contextlib
import http.server
import json
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager

import pytest

from agentvisor.client.grpc_transport import GrpcTransport
from agentvisor.client.socketpair import Channel
from agentvisor.client.transport import Transport
from agentvisor.core.ids import ThreadId
from agentvisor.host.callers import Callers
from agentvisor.host.config_http import HttpConfig
from agentvisor.host.rpc.store_service import store_server
from agentvisor.protocol.frames import Frames, frame
from agentvisor.protocol.v1.guest_pb2 import AgentTask, FromAgent, StoreAnswer, ToAgent
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

Handle = Callable[[str | None, StoreRequest], StoreReply]

WAYS = ("socketpair", "grpc")


@contextmanager
def way_to(handle: Handle, way: str, *, task: AgentTask | None = None) -> Generator[Transport]:
    """A connected transport whose requests `handle` answers."""
    with over_socketpair(handle, task) if way == "socketpair" else over_grpc(handle) as transport:
        yield transport


class SupervisorDouble:
    """The supervisor's end of a channel, with the host behind it: answers calls, keeps everything else."""

    def __init__(self, sock: socket.socket, handle: Handle) -> None:
        self._socket = sock
        self._handle = handle
        self.said: list[FromAgent] = []
        """Events and outcomes."""
        self.thread = threading.Thread(target=self._serve)

    def tell(self, message: ToAgent) -> None:
        self._socket.sendall(frame(message.SerializeToString()))

    def _serve(self) -> None:
        frames = Frames()
        with contextlib.suppress(OSError):  # the agent may go before its last answer
            while data := self._socket.recv(1 << 18):
                for raw in frames.feed(data):
                    self._take(FromAgent.FromString(raw))

    def _take(self, message: FromAgent) -> None:
        if not message.HasField("call"):
            self.said.append(message)
            return
        request = message.call.request
        is_for_all = request.WhichOneof("kind") == "list" and request.list.all_threads
        reply = self._handle(None if is_for_all else request.thread_id, request)
        self.tell(ToAgent(answer=StoreAnswer(id=message.call.id, reply=reply)))


@contextmanager
def over_socketpair(handle: Handle, task: AgentTask | None = None) -> Generator[Channel]:
    ours, theirs = socket.socketpair()
    supervisor = SupervisorDouble(theirs, handle)
    supervisor.tell(ToAgent(task=task or AgentTask()))
    supervisor.thread.start()
    channel = Channel(ours)
    try:
        channel.receive_task()
        channel.start_reader(lambda: None)
        yield channel
    finally:
        channel.close()
        supervisor.thread.join()
        theirs.close()


@contextmanager
def over_grpc(handle: Handle, key: str | None = None) -> Generator[GrpcTransport]:
    with listening(handle, key) as endpoint:
        transport = GrpcTransport.connect(endpoint, key)
        try:
            yield transport
        finally:
            transport.close()


@contextmanager
def listening(handle: Handle, key: str | None = None) -> Generator[str]:
    """A host's HTTP address, with gRPC behind it."""
    with ExitStack() as stack:
        grpc_address = stack.enter_context(serving_grpc(handle, key))
        yield stack.enter_context(answering_info({"grpc": grpc_address}, key))


@contextmanager
def serving_grpc(handle: Handle, key: str | None = None) -> Generator[str]:
    address: list[str] = []
    started, stop = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    class Door:
        async def call(self, thread_id: ThreadId | None, request: StoreRequest) -> StoreReply:
            return await asyncio.to_thread(handle, thread_id, request)

    callers = Callers(HttpConfig(operator_key=key))  # type: ignore[arg-type]

    async def serve() -> None:
        async with store_server(lambda _: Door(), "127.0.0.1", 0, callers) as bound:
            address.append(bound)
            loops.append(asyncio.get_running_loop())
            started.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert started.wait(30)
    try:
        yield address[0]
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join()


@contextmanager
def answering_info(info: object, key: str | None = None, *, status: int = 200) -> Generator[str]:
    """An HTTP server that answers GET /info."""

    class Info(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(info).encode()
            is_allowed = key is None or self.headers["Authorization"] == f"Bearer {key}"
            self.send_response((status if is_allowed else 401) if self.path == "/info" else 404)
            if status in {301, 302}:
                self.send_header("Location", str(info))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Info)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """Each way in turn."""
    return str(request.param)
