"""Files that change under `agentvisor dev`: code is taken, what only a start reads is said to need one."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path

from structlog.testing import capture_logs
from tests.support.waiting import until

from agentvisor.host.config import load_config
from agentvisor.host.reload import reload_on_change


async def test_a_change_of_the_env_file_of_a_langgraph_project_asks_for_a_restart(tmp_path: Path) -> None:
    (tmp_path / "agent.py").touch()
    (tmp_path / "langgraph.json").write_text(json.dumps({"graphs": {"a": "./agent.py:graph"}, "env": "dev.env"}))
    (tmp_path / "dev.env").write_text("A=0\n")
    config, changes = load_config(tmp_path, environ={}), list[bool]()
    with capture_logs() as logs:
        watching = asyncio.create_task(reload_on_change(config, lambda: changes.append(True)))

        async def is_seen() -> bool:
            (tmp_path / "dev.env").write_text(f"A={len(changes)} \n")  # again, for who begins to watch
            return bool(changes)

        await until(is_seen)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    [asked] = [one for one in logs if one["event"] == "configuration_changed"][:1]
    assert asked["files"] == [str(tmp_path / "dev.env")]
