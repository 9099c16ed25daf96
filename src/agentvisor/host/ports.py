"""A TCP port that must be free, or an error that says who has it and how to choose another."""

import errno
import socket
from dataclasses import dataclass

import psutil

from agentvisor.core.errors import Unavailable


@dataclass(frozen=True)
class Port:
    """A port, what it is for, and where the user chooses it."""

    number: int
    purpose: str
    option: str | None
    """None: no command has an option for it."""
    setting: str


def require_free(ip: str, *ports: Port) -> None:
    """Raise `Unavailable` if anything listens on one of the ports at `ip`."""
    for port in ports:
        choices = [port.option, f"AGENTVISOR_{port.setting.replace('.', '_').upper()}"]
        named = ", ".join(choice for choice in choices if choice)
        choose = f"choose another: {named} or {port.setting} in agentvisor.yaml"
        try:
            family, kind, _, _, address = socket.getaddrinfo(ip, port.number, type=socket.SOCK_STREAM)[0]
        except OSError as error:
            section = port.setting.partition(".")[0]
            raise Unavailable(
                f"{port.purpose} cannot listen on {ip!r}: {error.strerror}; set {section}.host to an address of "
                "this machine"
            ) from error
        with socket.socket(family, kind) as probe:
            # As servers do: connections that linger from a server's last life do not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
            except OSError as error:
                taken = error.errno == errno.EADDRINUSE
                what = f"is taken{_by_whom(port.number)}" if taken else f"cannot be had at {ip}"
                raise Unavailable(
                    f"port {port.number} for {port.purpose} {what} ({error.strerror}); "
                    f"{'free it, or ' if taken else ''}{choose}",
                    port=str(port.number),
                ) from error


def _by_whom(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            here = connection.laddr[1:] == (port,)
            if here and connection.status == psutil.CONN_LISTEN and connection.pid:
                return f" by process {connection.pid} ({psutil.Process(connection.pid).name()})"
    except psutil.Error:
        # Who it is, is a courtesy: other users' processes may be hidden from us.
        pass
    return ""
