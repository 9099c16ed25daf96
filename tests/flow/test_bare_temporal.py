"""A Temporal server that has never heard of AgentVisor: the host makes it ready before it says that it is."""

from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.service import RPCError
from tests.flow.conftest import Project, client_of
from tests.support.temporal import NAMESPACE, TemporalProcess
from tests.support.waiting import until

pytestmark = pytest.mark.flow


async def test_a_host_registers_its_search_attributes(tmp_path: Path) -> None:
    server = TemporalProcess(tmp_path / "temporal")
    server.launch()
    project = Project(tmp_path, server.address, "zygote", {"calls": "calls.py:call"})
    try:

        async def answers() -> bool:
            try:
                client = await Client.connect(server.address, namespace=NAMESPACE)
                return await client.service_client.check_health()
            except (RPCError, RuntimeError):
                return False

        await until(answers, seconds=30)
        threads = client_of(project.host()).threads
        made = threads.create(metadata={"made": "here"})
        assert threads.get(made["thread_id"])["status"] == "idle"
    finally:
        for host in project.hosts:
            host.stop()
        server.stop()
