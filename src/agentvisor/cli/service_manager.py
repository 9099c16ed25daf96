"""Tells systemd how far a host is: datagrams as of sd_notify(3), sent where NOTIFY_SOCKET says that one listens."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import suppress

Notify = Callable[[str], None]

READY = "READY=1"
STOPPING = "STOPPING=1"


def notifier(environ: Mapping[str, str]) -> Notify:
    """What sends a state to the service manager that started this process; it does nothing where there is none."""
    path = environ.get("NOTIFY_SOCKET", "")
    if not path.startswith(("/", "@")):
        return lambda _: None
    # An @ stands for the zero byte of an address that is no file.
    address = f"\0{path[1:]}" if path.startswith("@") else path

    def notify(state: str) -> None:
        # A manager that does not listen any more is no reason for a host to fail.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to:
            to.sendto(state.encode(), address)

    return notify
