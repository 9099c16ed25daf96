"""Check `agents`: each agent's code can be imported, tried in a guest as its runs would be."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from agentvisor.core.errors import AgentVisorError, InvalidInput
from agentvisor.host.checks.finding import Finding, failed, ok, warning
from agentvisor.host.config import Config
from agentvisor.host.descriptions import Descriptions
from agentvisor.host.guests import Guests
from agentvisor.protocol.v1.guest_pb2 import Description

NAME = "agents"


async def check_agents(config: Config) -> AsyncIterator[Finding]:
    """Asks each what it is; nothing of it runs but its module. In the main thread (guests end with theirs)."""
    if not config.agents:
        yield warning(
            NAME, f"none are configured in {config.base_dir}", "add one to agentvisor.yaml, or give --config FOLDER"
        )
        return
    loaded: list[str] = []
    async with _as_it_was(config.dev.data_dir / "guests"), Guests(config) as guests:
        descriptions = Descriptions(guests, config)
        try:
            for name in config.agents:
                try:
                    await descriptions.describe(name, Description(part=Description.PART_GRAPH))
                except InvalidInput:
                    loaded.append(name)  # it was loaded, and this cannot be asked of it
                except AgentVisorError as error:
                    yield failed(NAME, f"{name}: {_last_line(error.message)}", _advice(name), type(error))
                else:
                    loaded.append(name)
        finally:
            await descriptions.stop()
    if loaded:
        yield ok(NAME, f"{', '.join(loaded)}: loaded in a guest")


@asynccontextmanager
async def _as_it_was(folder: Path) -> AsyncGenerator[None]:
    """Guests make their folder, and those above it: of them, what was not there and is empty is taken away again."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        yield
    finally:
        with suppress(OSError):
            for one in missing:
                one.rmdir()


def _advice(name: str) -> str:
    return (
        f"see agents.{name}.entrypoint, and what its module imports: packages of this environment, folders of "
        f"agents.{name}.python_path, variables of agents.{name}.env"
    )


def _last_line(message: str) -> str:
    """Without the traceback, whose last line says the same."""
    return message.splitlines()[0]
