"""Connections of HTTP: one that says nothing, or says it byte by byte, is not kept."""

from __future__ import annotations

import asyncio

import h11
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from agentvisor.host.config_http import HttpConfig
from agentvisor.host.http.errors import refusal

_SLACK = 64 * 1024
"""Past the limits, bytes of a URL with headers that are still answered as ours, and not as no HTTP."""


class PatientProtocol(H11Protocol):
    """uvicorn's, with a deadline for the headers of each request, and errors that a client of ours can read."""

    read_timeout = 60.0

    _deadline: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.trailing_data[0]:
            self._watch()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._settle()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """The deadline is that of the first byte: more bytes do not move it."""
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            self._settle()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.read_timeout, self._too_slow)

    def _settle(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            text = f"the request's headers did not come within {self.read_timeout:g} s (http.read_timeout)"
            self._refuse(408, text)

    @override
    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for what is no HTTP."""
        self._refuse(400, f"{msg} It is no HTTP/1.1, or its headers are far over http.max_headers.")

    def _refuse(self, status: int, text: str) -> None:
        response = refusal(status, text, {"connection": "close"})
        head = h11.Response(status_code=status, headers=response.raw_headers)
        for event in (head, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def protocol_of(http: HttpConfig) -> tuple[type[PatientProtocol], int]:
    """The protocol with the configuration's patience, and the bytes that it takes before a request is whole."""
    seconds = http.read_timeout.total_seconds()
    return type("ConfiguredProtocol", (PatientProtocol,), {"read_timeout": seconds}), (
        http.max_url + http.max_headers + _SLACK
    )
