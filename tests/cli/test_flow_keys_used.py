"""Before a key goes: what still needs it is counted, objects of external storage included, whatever keys are here."""

import json
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
import yaml
from tests.cli.conftest import run_command
from tests.host.http.conftest import AGENTS
from tests.support.encryption import settings
from tests.support.temporal import TemporalProcess, free_ports
from tests.support.waiting import until

from agentvisor.host.app import running_host
from agentvisor.host.codec.used import keys_used
from agentvisor.host.config import load_config
from agentvisor.host.external.backend import open_backend
from agentvisor.host.temporal_client import client_of
from agentvisor.host.threads_migrate import Migration, migrate_all

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


async def test_objects_need_the_old_key_after_every_thread_was_taken_along(
    temporal: TemporalProcess, tmp_path: Path
) -> None:
    old, new = (f"{name}-{uuid4().hex[:8]}" for name in ("old", "new"))

    def configured(*keys: str) -> None:
        tree = {
            "agents": {"asking": f"{AGENTS}:asking"},
            "temporal": {"address": temporal.address, "task_queue": old},
            "http": {"port": free_ports(1)[0]},
            "storage": {"url": f"file://{tmp_path}/store", "max_inline_value": 10},
            "encryption": settings(*keys),
        }
        (tmp_path / "agentvisor.yaml").write_text(yaml.safe_dump(tree))

    configured(old)
    config = load_config(tmp_path, environ={})
    async with running_host(config, await client_of(config)) as host, httpx.AsyncClient(timeout=30) as http:
        body: dict[str, object] = {"assistant_id": "asking", "input": {}, "if_not_exists": "create"}
        assert (await http.post(f"{host.url}/threads/{old}/runs/wait", json=body)).is_success
    configured(new, old)
    config = load_config(tmp_path, environ={})
    client = await client_of(config)
    async with running_host(config, client):
        assert (await migrate_all(client, everything=True))[Migration.ASKED] > 0

        async def every_thread_is_along() -> bool:
            uses = await keys_used(client, open_backend(config.storage.url or "", {}))
            return uses.threads[new] == 1 and not uses.threads[old] and uses.objects[old] > 0

        await until(every_thread_is_along)
    configured(new)
    ended = await run_command("encryption-key", "used", "--config", str(tmp_path), "--json")
    assert ended.code == 0, ended.err
    found = {one["key"]: one for one in json.loads(ended.out)}
    assert (found[new]["here"], found[new]["threads"], found[new]["objects"]) == ("encrypts", 1, 0)
    assert (found[old]["here"], found[old]["threads"], found[old]["objects"] > 0) == ("is missing", 0, True)
