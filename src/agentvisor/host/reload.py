"""Watches the agents' files: a change gives new runs a new guest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import structlog
from watchfiles import Change, DefaultFilter
from watchfiles import awatch as watch  # pyright: ignore[reportUnknownVariableType] - an annotation of its own

from agentvisor.host.config import Config, files_read

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.reload")

_ENDINGS = (".py", ".yaml", ".yml", ".json", ".toml", ".txt", ".md", ".env")


class _AgentFiles(DefaultFilter):
    """Source and prompts, not what runs write."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(ignore_paths=[str(data_dir)])

    def __call__(self, change: Change, path: str) -> bool:
        return path.endswith(_ENDINGS) and super().__call__(change, path)


async def reload_on_change(config: Config, changed: Callable[[], None]) -> None:
    """Call `changed` after the agents' files have changed, until cancelled."""
    folders = {config.base_dir, *(folder for agent in config.agents.values() for folder in agent.python_path)}
    present = [folder for folder in folders if folder.is_dir()]
    read_once = {str(file) for file in files_read(config.base_dir)}
    async for changes in watch(*present, watch_filter=_AgentFiles(config.dev.data_dir), step=100):
        files = {path for _, path in changes}
        configured = files & read_once
        if configured:
            log.warning("configuration_changed", files=sorted(configured), hint="restart agentvisor dev to use it")
        log.info("agents_reloaded", files=sorted(files)[:5])
        changed()
