"""With keys, nothing of what agents and callers hand over is seen in Temporal's files or in external storage.

The same without keys finds every one of these words there: a word that nobody would find proves nothing.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import yaml
from tests.support.encryption import settings
from tests.support.temporal import TemporalProcess, free_ports
from tests.support.waiting import until

from agentvisor.core.ids import ThreadId
from agentvisor.host.api_keys import hash_of
from agentvisor.host.app import Host, running_host
from agentvisor.host.config import load_config
from agentvisor.host.temporal_client import client_of

pytestmark = pytest.mark.flow

AGENT = Path(__file__).parent / "agents" / "secretive.py"
WORDS = {
    "canary-input", "canary-value", "canary-large", "canary-question", "canary-answer", "canary-error",
    "canary-state", "canary-effect", "canary-effect-key", "canary-item", "canary-item-key", "canary-namespace",
    "canary-thread-metadata", "canary-run-metadata", "canary-configurable", "canary-webhook", "canary-cron",
    "canary-assistant", "canary-outside", "CanaryError",
}  # fmt: skip
OWNER = "canaryowner"
STAYS = {"canary-thread-id", "canary-agent"}
"""What the page lists as seen: ids of threads, names of agents."""


@asynccontextmanager
async def host_of(server: TemporalProcess, folder: Path, encryption: dict[str, Any] | None) -> AsyncGenerator[Host]:
    tree: dict[str, Any] = {
        "agents": {"canary-agent": f"{AGENT}:asks", "breaks": f"{AGENT}:breaks"},
        "http": {
            "port": free_ports(1)[0],
            "operator_key": "operators key",
            "api_keys": [{"name": "o", "owner": OWNER, "hash": hash_of("owners key")}],
            "webhook_allow_private": True,
        },
        "temporal": {"task_queue": f"q-{uuid4().hex[:8]}", "address": server.address},
        "storage": {"url": f"file://{folder / 'values'}", "max_inline_value": 20_000},
        "dev": {"data_dir": str(folder / "data")},
    }
    if encryption is not None:
        tree["encryption"] = encryption
    folder.mkdir(exist_ok=True)
    (folder / "agentvisor.yaml").write_text(yaml.safe_dump(tree))
    config = load_config(folder, environ={})
    async with running_host(config, await client_of(config)) as host:
        yield host


async def told_everything(host: Host) -> dict[str, Any]:
    """Hand every word over, by the way that callers and agents have; what readers are told."""
    async with httpx.AsyncClient(base_url=host.url, headers={"x-api-key": "owners key"}, timeout=60) as http:

        async def ask(method: str, path: str, body: Any = None) -> Any:
            answer = await http.request(method, path, json=body)
            assert answer.is_success, answer.text
            return answer.json() if answer.content else None

        metadata = {"note": "canary-thread-metadata"}
        await ask("POST", "/threads", {"thread_id": "canary-thread-id", "metadata": metadata})
        assistant = await ask(
            "POST", "/assistants", {"graph_id": "canary-agent", "name": "n", "metadata": {"m": "canary-assistant"}}
        )
        run = {
            "assistant_id": assistant["assistant_id"],
            "input": {"text": "canary-input"},
            "metadata": {"m": "canary-run-metadata"},
            "config": {"configurable": {"c": "canary-configurable"}},
            "webhook": "http://127.0.0.1:9/canary-webhook",
        }
        asked = await ask("POST", "/threads/canary-thread-id/runs/wait", run)
        assert asked["__interrupt__"][0]["value"] == "canary-question"
        answer = {"assistant_id": "canary-agent", "command": {"resume": "canary-answer"}}
        await ask("POST", "/threads/canary-thread-id/runs/wait", answer)
        broken = {"assistant_id": "breaks", "input": {"text": "x"}, "if_not_exists": "create"}
        await ask("POST", f"/threads/{uuid4()}/runs/wait", broken)
        await ask("PUT", "/threads/canary-thread-id/thread-state/outside", {"value": "canary-outside"})
        cron = {"assistant_id": "breaks", "schedule": "0 0 1 1 *", "input": {"text": "canary-cron"}}
        made = await ask("POST", "/runs/crons", cron)
        schedules = host.threads._client
        await schedules.get_schedule_handle(await only_schedule(host)).trigger()

        async def fired() -> bool:
            listed = schedules.list_workflows("WorkflowType = 'agentvisor.cron' AND ExecutionStatus = 'Completed'")
            return [one async for one in listed] != []

        await until(fired, seconds=30)

        async def found() -> bool:
            return len(await ask("POST", "/threads/search", {"metadata": metadata})) == 1

        await until(found)
        state = await ask("GET", "/threads/canary-thread-id/state")
        item = await ask("GET", "/store/items?namespace=canary-namespace&key=canary-item-key")
        assert [one["cron_id"] for one in await ask("POST", "/runs/crons/search", {})] == [made["cron_id"]]
        copied = await ask("POST", "/threads/canary-thread-id/copy")
        copy = await ask("GET", f"/threads/{copied['thread_id']}/state")
        assert copy["values"]["large"] == state["values"]["large"]
        return {"state": state["values"], "item": item["value"]}


async def only_schedule(host: Host) -> str:
    (schedule,) = [one.id async for one in await host.threads._client.list_schedules()]
    return schedule


def seen(words: set[str], *folders: Path) -> set[str]:
    """Those of the words that stand in any file, in the names of files, or in a file's name."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    texts = [*(str(path).encode() for path in files), *(path.read_bytes() for path in files)]
    return {word for word in words if any(word.encode() in text for text in texts)}


@pytest.mark.parametrize("search", ["hashed", *(pytest.param(one, marks=pytest.mark.slow) for one in ("off", None))])
async def test_what_temporal_and_external_storage_see(
    temporal_process: TemporalProcess, tmp_path: Path, search: str | None
) -> None:
    folder = tmp_path / "host"
    encryption = settings("k", search=search) if search == "hashed" else None
    if search == "off":
        encryption = settings("k", search="off", index_key=None)
    async with host_of(temporal_process, folder, encryption) as host:
        if search == "off":
            async with httpx.AsyncClient(base_url=host.url, headers={"x-api-key": "operators key"}) as http:
                refused = await http.post("/threads/search", json={"metadata": {"a": "b"}})
            assert (refused.status_code, "encryption.search is off" in refused.json()["detail"]) == (422, True)
            return
        told = await told_everything(host)
        assert told["state"]["answer"] == "canary-answer"
        assert told["item"] == {"text": "canary-item"}
        async with httpx.AsyncClient(base_url=host.url, headers={"x-api-key": "operators key"}) as http:
            assert (await http.get("/threads/canary-thread-id")).json()["metadata"]["note"] == "canary-thread-metadata"
        assert (await host.threads.get(ThreadId("canary-thread-id"))).owner == OWNER
    temporal_process.stop()
    places = [temporal_process.folder, folder / "values"]
    assert seen(STAYS, *places) == STAYS
    assert seen(WORDS | {OWNER}, *places) == (set() if search else WORDS | {OWNER})
