"""A TCP port that must be free, or an error that says who has it and how to choose another."""

import socket
from dataclasses import dataclass

import psutil

from agentvisor.core.errors import Unavailable


@dataclass(frozen=True)
class Port:
    """A port, what it is for, and where the user chooses it."""

    number: int
    purpose: str
    option: str
    setting: str


def require_free(ip: str, *ports: Port) -> None:
    """Raise `Unavailable` if anything listens on one of the ports at `ip`."""
    for port in ports:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # As servers do: connections that linger from a server's last life do not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((ip, port.number))
            except OSError as error:
                variable = f"AGENTVISOR_{port.setting.replace('.', '_').upper()}"
                raise Unavailable(
                    f"port {port.number} for {port.purpose} is taken{_by_whom(port.number)} ({error.strerror}); "
                    f"free it, or choose another: {port.option}, {variable} or {port.setting} in agentvisor.yaml",
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
