"""A host with its Temporal, Temporal's UI in Debian's Chromium, and threads to look at."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser
from tests.support.browser import chromium
from tests.support.dev_process import DevProcess

HERE = Path(__file__).parent


class Served:
    """The host, as its clients and as somebody at Temporal's UI reach it."""

    def __init__(self, dev: DevProcess) -> None:
        self.dev = dev
        self.folder = dev.folder
        self.ui = f"http://127.0.0.1:{dev.ui_port}"
        self.temporal = f"127.0.0.1:{dev.temporal_port}"
        self.http = httpx.Client(base_url=dev.url, timeout=60)

    def run(self, thread_id: str, agent: str, given: Any) -> Any:
        """What comes of a run that is waited for."""
        body = {"assistant_id": agent, "input": given, "if_not_exists": "create"}
        answer = self.http.post(f"/threads/{thread_id}/runs/wait", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "agents.py").write_text((HERE / "agents.py").read_text())
    functions = {
        name: {"entrypoint": f"./agents.py:{name}", "framework": "function"} for name in ("desk", "failing", "holding")
    }
    # JSON is YAML.
    (folder / "agentvisor.yaml").write_text(json.dumps({"agents": {"refunds": "./agents.py:refunds", **functions}}))
    dev = DevProcess(folder, "--no-reload").start()
    try:
        yield Served(dev)
    finally:
        dev.end()


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Closed with the module, so that tests of others can run."""
    with chromium() as browser:
        yield browser
