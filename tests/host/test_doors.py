"""A host that cannot listen or write says which port or folder, and what to choose instead, before anything starts."""

import socket
from collections.abc import Generator
from pathlib import Path

import pytest
from fastapi import FastAPI

from agentvisor.core.errors import Unavailable
from agentvisor.host.config_http import HttpConfig
from agentvisor.host.folders import require_writable
from agentvisor.host.http.server import serving
from agentvisor.host.ports import Port, require_free


@pytest.fixture
def taken() -> Generator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("ip", ["127.0.0.1", "localhost"])
def test_a_port_that_is_taken_is_named_with_its_settings(taken: int, ip: str) -> None:
    with pytest.raises(Unavailable, match=f"port {taken} for gRPC is taken by process") as error:
        require_free(ip, Port(taken, "gRPC", None, "grpc.port"))
    assert "choose another: AGENTVISOR_GRPC_PORT or grpc.port in agentvisor.yaml" in error.value.message
    with pytest.raises(Unavailable, match=r"--port, AGENTVISOR_HTTP_PORT or http\.port"):
        require_free(ip, Port(taken, "HTTP", "--port", "http.port"))


def test_a_host_that_is_no_address_is_not_called_taken() -> None:
    with pytest.raises(Unavailable, match="HTTP cannot listen on 'no such host'") as error:
        require_free("no such host", Port(8090, "HTTP", "--port", "http.port"))
    assert "http.host" in error.value.message
    with pytest.raises(Unavailable, match=r"cannot be had at 192\.0\.2\.1"):
        require_free("192.0.2.1", Port(8090, "HTTP", "--port", "http.port"))


async def test_a_server_that_cannot_listen_is_an_error_and_not_the_end_of_the_program(taken: int) -> None:
    with pytest.raises(Unavailable, match=f"HTTP cannot listen on 127.0.0.1:{taken}: .*in use"):
        async with serving(FastAPI(), HttpConfig(port=taken)):
            pytest.fail("it listens")


def test_a_folder_that_cannot_be_written_to_is_named_with_its_settings(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / ".agentvisor"
    with pytest.raises(Unavailable, match=f"the data folder {folder} cannot be written to") as error:
        require_writable(folder)
    assert "--data-dir" in error.value.message


def test_a_folder_that_is_missing_is_made_and_nothing_stays_in_it(tmp_path: Path) -> None:
    require_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
