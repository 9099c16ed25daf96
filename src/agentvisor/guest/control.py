"""What supervisor and zygote say to each other: small JSON messages, and the open files that go with them."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import cast

from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.frames import HEADER, MAX_FRAME, frame

MAX_FILES = 8


@dataclass(frozen=True)
class Prepare:
    """First of all: what to import, and the agent to load if its configuration says so."""

    modules: list[str]
    entrypoint: str
    search_path: list[str]


@dataclass(frozen=True)
class Ready:
    """The zygote has imported what it was told to."""


@dataclass(frozen=True)
class Start:
    """Asks for an agent process; its channel, stdout and stderr come with it."""

    request: int
    environment: dict[str, str]
    fork: bool
    """Fork it; else, and where forking is not safe, execute a new interpreter."""


@dataclass(frozen=True)
class Started:
    request: int
    pid: int
    note: str
    """Why it was not forked although it should have been."""


@dataclass(frozen=True)
class Failed:
    """The system refused to make a process."""

    request: int
    reason: str


@dataclass(frozen=True)
class Ended:
    """What waitid told the zygote of one of its agents."""

    pid: int
    killed: bool
    code: int


@dataclass(frozen=True)
class Ping:
    """Asks whether the zygote still serves."""


@dataclass(frozen=True)
class Pong:
    """It does."""


Message = Prepare | Ready | Start | Started | Failed | Ended | Ping | Pong
KINDS: dict[str, type[Message]] = {
    kind.__name__: kind for kind in (Prepare, Ready, Start, Started, Failed, Ended, Ping, Pong)
}


def encode(message: Message) -> bytes:
    """Return the message as a frame."""
    return frame(json.dumps([type(message).__name__, asdict(message)]).encode())


def decode(data: bytes) -> Message:
    """Read what `encode` wrote, without its length."""
    kind, fields = cast("tuple[str, dict[str, object]]", json.loads(data))
    return KINDS[kind](**fields)  # pyright: ignore[reportArgumentType]


def send(link: socket.socket, message: Message) -> None:
    """Send a message; blocks."""
    link.sendall(encode(message))


def receive(link: socket.socket) -> tuple[Message, Sequence[int]] | None:
    """Wait for a message and its files; None at the end of the stream."""
    # The files travel with the first bytes.
    head, files, _flags, _address = socket.recv_fds(link, HEADER.size, MAX_FILES)
    if not head:
        return None
    for file in files:
        os.set_inheritable(file, False)
    head += _exactly(link, HEADER.size - len(head))
    (length,) = HEADER.unpack(head)
    if length > MAX_FRAME:
        raise InvalidInput(f"a control message of {length} bytes is over the limit of {MAX_FRAME}")
    return decode(_exactly(link, length)), files


def _exactly(link: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        part = link.recv(length - len(data))
        if not part:
            raise EOFError("the control socket ended inside a message")
        data += part
    return bytes(data)
