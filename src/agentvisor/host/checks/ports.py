"""Check `ports`: those that a host needs are free, or an AgentVisor host has them already."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import httpx

from agentvisor.core.errors import Unavailable
from agentvisor.host.checks.finding import Finding, failed, ok
from agentvisor.host.config import Config
from agentvisor.host.ports import Port, require_free

NAME = "ports"
_SECONDS = 3.0


async def check_ports(config: Config) -> AsyncIterator[Finding]:
    """Of HTTP and gRPC; what the embedded Temporal needs is part of the check of the connection."""
    http = config.http
    try:
        require_free(http.host, Port(http.port, "HTTP", "--port", "http.port"))
    except Unavailable as error:
        if await _is_ours(http.host, http.port):
            yield ok(NAME, f"an AgentVisor host answers at {http.host}:{http.port}")
            return  # and has the port of its gRPC end
        yield failed(NAME, error.message, "end what has it, or choose another port")
        return
    if config.grpc.port:
        try:
            require_free(config.grpc.host, Port(config.grpc.port, "gRPC", None, "grpc.port"))
        except Unavailable as error:
            yield failed(NAME, error.message, "end what has it, or choose another port")
            return
        yield ok(NAME, f"{http.host}:{http.port} (HTTP) and {config.grpc.host}:{config.grpc.port} (gRPC) are free")
    else:
        yield ok(NAME, f"{http.host}:{http.port} (HTTP) is free")


async def _is_ours(host: str, port: int) -> bool:
    """Whether it answers as our hosts do, one that is stopping included."""
    named = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - not listened on
    at = f"[{named}]" if ":" in named else named
    try:
        async with httpx.AsyncClient(timeout=_SECONDS, trust_env=False) as client:
            answer = cast("object", (await client.get(f"http://{at}:{port}/ok")).json())
    except (httpx.HTTPError, ValueError):
        return False
    return isinstance(answer, dict) and "ok" in answer
