"""A supervisor is given what it needs and nothing else of the host's."""

import os
from pathlib import Path

import pytest
from tests.host.guest_processes import until

from agentvisor.host.sandboxes.process import start_process
from agentvisor.protocol.v1.guest_pb2 import GuestSetup

TOKEN = b"secret-of-the-guest-in-32-bytes!"


async def test_the_environment_is_an_allow_list_and_the_token_is_nowhere_to_be_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOST_SECRET", "canary")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    setup = GuestSetup(guest_id="g1", token=TOKEN, address="unix:/nowhere.sock", start_method="exec")
    process = start_process(setup, {"MY_KEY": "mine"})
    try:
        folder = Path(f"/proc/{process.pid}")
        await until(lambda: b"supervisor" in (folder / "cmdline").read_bytes())
        environment = (folder / "environ").read_bytes()
        assert {b"MY_KEY=mine", b"LC_ALL=C.UTF-8", b"AGENTVISOR_GUEST_ID=g1"} <= set(environment.split(b"\0"))
        assert b"canary" not in environment
        for place in (environment, (folder / "cmdline").read_bytes()):
            assert TOKEN not in place
            assert TOKEN.hex().encode() not in place
        # A session of its own: a Ctrl-C at the host's terminal is the host's to handle.
        assert os.getsid(process.pid) == process.pid
    finally:
        process.kill()
        process.wait()


@pytest.mark.flow
async def test_a_supervisor_whose_host_is_not_there_ends() -> None:
    process = start_process(GuestSetup(guest_id="g2", token=TOKEN, address="unix:/nowhere.sock"), {})
    try:
        await until(lambda: process.poll() is not None, seconds=20)
    finally:
        process.kill()
        process.wait()
