"""The API with real parts: fast tests reach no Temporal, flow tests a real one, with real guests."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Self

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from temporalio.client import Client
from tests.host.http.declared import check_as_it_comes
from tests.support.temporal import TemporalProcess, free_ports, temporal_server

from agentvisor.core.errors import Unavailable
from agentvisor.core.ids import ThreadId
from agentvisor.core.owners import Owner
from agentvisor.core.thread import Settings
from agentvisor.host.app import Host, running_host
from agentvisor.host.assistants import AssistantDefaults, Assistants
from agentvisor.host.callers import Callers
from agentvisor.host.config import Config, load_config
from agentvisor.host.crons import Crons
from agentvisor.host.http.app import create_app
from agentvisor.host.items import ItemLimits, Items
from agentvisor.host.run_events import RunEvents
from agentvisor.host.shelves import ShelfDefaults, Shelves
from agentvisor.host.streams import RunStreams
from agentvisor.host.temporal_client import connect
from agentvisor.host.threads import ThreadDefaults, Threads
from agentvisor.protocol.errors import to_error
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

AGENTS = Path(__file__).parent / "agents.py"
NAMES = (
    "asking",
    "asking_at_a_gate",
    "talking",
    "failing",
    "waiting",
    "plain",
    "nothing",
    "nested",
    "nested_later",
    "deltas",
    "choosing",
    "dying",
    "configured",
)


def config_in(folder: Path, **overrides: object) -> Config:
    lines = [f"  {name}: {AGENTS}:{name}" for name in NAMES]
    (folder / "agentvisor.yaml").write_text("\n".join(["agents:", *lines, ""]))
    settings = {name.replace("__", "."): value for name, value in overrides.items()}
    return load_config(folder, environ={}, overrides=settings)


class NoSessions:
    """Sessions of a host that cannot open any."""

    def __init__(self, door: Threads) -> None:
        self._door = door

    def of(self, owner: Owner) -> Self:
        return type(self)(self._door.of(owner))

    async def prune(self, thread_id: ThreadId) -> None:
        await self._door.get(thread_id)

    async def call(self, thread_id: ThreadId | None, request: StoreRequest) -> StoreReply:
        return StoreReply(error=to_error(Unavailable(f"no session for {thread_id}: {request.WhichOneof('kind')}")))


async def app_without_temporal(config: Config) -> FastAPI:
    """The real app; what it asks of Temporal fails."""
    client = await Client.connect(f"127.0.0.1:{free_ports(1)[0]}", lazy=True)
    defaults = ThreadDefaults("queue", True, Settings(), config.storage.max_input, config.storage.max_value)
    door = Threads(client, defaults)

    shelves = Shelves(client, ShelfDefaults("queue"))
    items = Items(shelves, ItemLimits())
    assistants = Assistants(shelves, AssistantDefaults(tuple(config.agents), 0))
    callers = Callers(config.http)
    streams = RunStreams()
    return create_app(
        door,
        streams,
        RunEvents(door, streams),
        config,
        outside=NoSessions(door),
        items=items,
        assistants=assistants,
        crons_of=Crons(client, shelves, "queue"),
        callers=callers,
        version="1.2.3",
        grpc_address="127.0.0.1:1",
    )


@pytest.fixture
async def api(tmp_path: Path) -> AsyncGenerator[httpx.AsyncClient]:
    app = await app_without_temporal(config_in(tmp_path))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


@pytest.fixture(scope="session")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Generator[TemporalProcess]:
    with temporal_server(tmp_path_factory.mktemp("temporal")) as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def host(temporal: TemporalProcess, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Host]:
    config = config_in(tmp_path_factory.mktemp("host"), http__port=free_ports(1)[0])
    async with running_host(config, await connect(temporal.address, "default")) as host:
        yield host


@pytest_asyncio.fixture(loop_scope="session")
async def sdk(host: Host) -> AsyncGenerator[LangGraphClient]:
    async with get_client(url=host.url) as client:
        client.http.client.event_hooks["response"].append(check_as_it_comes)
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def http(host: Host) -> AsyncGenerator[httpx.AsyncClient]:
    hooks = {"response": [check_as_it_comes]}
    async with httpx.AsyncClient(base_url=host.url, timeout=30, event_hooks=hooks) as client:
        yield client
