"""The agent process's one channel to its supervisor: length-prefixed messages on a socket that it inherited.

The runner receives its task through it, and sends events and its last word; the SDK makes its calls through it. Any
thread may write; one thread reads.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future

from google.protobuf.message import DecodeError

from agentvisor.core.errors import AgentVisorError, InvalidInput, Unavailable
from agentvisor.protocol.frames import Frames, frame
from agentvisor.protocol.v1.guest_pb2 import AgentTask, FromAgent, Outcome, StoreCall, StreamEvents, ToAgent
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

CHANNEL_FD = "AGENTVISOR_CHANNEL_FD"
"""Environment variable with the number of the inherited socket: set in an agent process, nowhere else."""

_READ_BYTES = 1 << 18


class Channel:
    """One end of the socketpair; a `Transport`.

    Takes the inherited socket, or its file descriptor, which belongs to the channel from then on.
    """

    def __init__(self, sock: socket.socket | int) -> None:
        self._socket = socket.socket(fileno=sock) if isinstance(sock, int) else sock
        self._incoming = self._messages()
        self._lock = threading.Lock()
        """Held while writing: the order on the wire is the order of the ids."""
        self._waiting: dict[int, Future[StoreReply]] = {}
        self._last_id = 0
        self._lost = False
        self._reader: threading.Thread | None = None
        self._owner = os.getpid()
        self.task = AgentTask()
        """What `receive_task` received."""
        self.drain_asked = False
        """The host stops, and would have the agent end between two steps."""
        self.flush_events: Callable[[], None] = _nothing
        """Sends the events that a runner holds back to send them in company."""

    def receive_task(self) -> AgentTask:
        """Wait for the first message, before the reader is started; `Unavailable` if the supervisor goes first."""
        for message in self._incoming:
            if message.HasField("task"):
                self.task = message.task
                return message.task
        self._lose()
        raise _gone()

    def start_reader(self, on_cancel: Callable[[], None]) -> None:
        """Complete calls, and call `on_cancel` when the run is to end, in a thread of their own from now on."""
        self._reader = threading.Thread(target=self._read, args=(on_cancel,), name="agentvisor-channel", daemon=True)
        self._reader.start()
        if os.environ.get(CHANNEL_FD) == str(self._socket.fileno()):
            _own.append(self)

    def call(self, request: StoreRequest) -> Future[StoreReply]:
        """Send a request and return its reply's future. Needs the reader."""
        future: Future[StoreReply] = Future()
        # Running, so that nobody can cancel it: the host acts on the request whoever still waits for it.
        future.set_running_or_notify_cancel()
        with self._lock:
            self._last_id += 1
            self._waiting[self._last_id] = future
            try:
                self._write(FromAgent(call=StoreCall(id=self._last_id, request=request)))
            except AgentVisorError as error:
                del self._waiting[self._last_id]
                future.set_exception(error)
        return future

    submit = call

    def send_events(self, events: StreamEvents) -> None:
        """Send what is to be streamed to the run's readers; nobody answers."""
        self._send(FromAgent(events=events))

    def send_outcome(self, outcome: Outcome) -> None:
        """Send the run's last word."""
        self._send(FromAgent(outcome=outcome))

    def close(self) -> None:
        """End the connection; calls that were not answered fail with `Unavailable`."""
        with contextlib.suppress(OSError):  # the other end may have gone first
            self._socket.shutdown(socket.SHUT_RDWR)
        if self._reader is not None and self._reader is not threading.current_thread():
            self._reader.join()
        self._lose()
        self._socket.close()

    def _send(self, message: FromAgent) -> None:
        with self._lock:
            self._write(message)

    def _write(self, message: FromAgent) -> None:
        if os.getpid() != self._owner:
            # Two processes writing frames to one socket would tear each other's apart.
            raise Unavailable("this process was forked from the agent's own: only that one can reach the host")
        if self._lost:
            raise _gone()
        data = frame(message.SerializeToString())
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise _gone() from error
        except BaseException:
            # An interrupt tore the frame: nothing that follows could be read.
            self._lost = True
            raise

    def _read(self, on_cancel: Callable[[], None]) -> None:
        try:
            for message in self._incoming:
                self._take(message, on_cancel)
        finally:
            self._lose()

    def _take(self, message: ToAgent, on_cancel: Callable[[], None]) -> None:
        match message.WhichOneof("kind"):
            case "answer":
                with self._lock:
                    future = self._waiting.pop(message.answer.id, None)
                if future is not None:
                    future.set_result(message.answer.reply)
            case "cancel":
                # Cancelling may interrupt the main thread wherever it is: not while it writes a frame.
                with self._lock:
                    on_cancel()
            case "drain":
                self.drain_asked = True
            case _:
                pass  # a newer supervisor's

    def _lose(self) -> None:
        with self._lock:
            self._lost = True
            waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            future.set_exception(_gone())

    def _messages(self) -> Iterator[ToAgent]:
        """What the supervisor says, until it is gone or makes no sense."""
        frames = Frames()
        try:
            while data := self._socket.recv(_READ_BYTES):
                for message in frames.feed(data):
                    yield ToAgent.FromString(message)
        except (OSError, InvalidInput, DecodeError):
            return


_own: list[Channel] = []


def own_channel() -> Channel:
    """The channel that this agent process was started with; its runner has started the reader."""
    if not _own:
        raise Unavailable(
            f"{CHANNEL_FD} is set, but this process is not the agent's own (which has the channel): "
            "call AgentVisor from the agent's process, not from one that it starts"
        )
    return _own[-1]


def _nothing() -> None:
    """No runner holds events back."""


def _gone() -> Unavailable:
    return Unavailable("the guest's supervisor is gone: what was not acknowledged may or may not be stored")
