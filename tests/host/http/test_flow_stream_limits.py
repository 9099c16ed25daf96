"""A key holds so many streams open on a host, and no more: the next is refused before its run is started."""

from pathlib import Path

import httpx
import pytest
from langgraph_sdk.errors import APIStatusError, _raise_for_status_typed
from tests.host.http.conftest import config_in
from tests.host.http.test_flow_threads import unique
from tests.support.temporal import TemporalProcess, free_ports
from tests.support.waiting import until

from agentvisor.host.app import running_host
from agentvisor.host.temporal_client import connect

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


async def test_a_stream_over_the_limit_is_refused_until_another_was_closed(
    temporal: TemporalProcess, tmp_path: Path
) -> None:
    config = config_in(tmp_path, http__port=free_ports(1)[0], http__max_streams=2, temporal__task_queue="stream-limits")
    gate = tmp_path / "gate"
    async with (
        running_host(config, await connect(temporal.address, "default")) as host,
        httpx.AsyncClient(base_url=host.url, timeout=30) as http,
    ):
        named = unique()
        body = {"assistant_id": "waiting", "input": {"gate": str(gate)}, "if_not_exists": "create"}
        async with http.stream("POST", f"/threads/{named}/runs/stream", json=body):
            async with http.stream("GET", f"/threads/{named}/stream"):
                refused = await http.post(f"/threads/{named}/runs/stream", json=body)
                with pytest.raises(APIStatusError) as error:
                    _raise_for_status_typed(refused)
                assert refused.status_code == 429
                assert refused.headers["retry-after"] == "1"
                assert refused.json()["code"] == "too_many"
                assert "http.max_streams" in str(error.value)
                assert len((await http.get(f"/threads/{named}/runs")).json()) == 1
                # What is no stream goes on.
                assert (await http.get(f"/threads/{named}")).status_code == 200

            async def opens() -> bool:
                async with http.stream("GET", f"/threads/{named}/stream") as response:
                    return response.status_code == 200

            await until(opens)
        gate.touch()
