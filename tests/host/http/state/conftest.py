"""A host of its own, whose agents are graphs with a past; and the same graphs in this process, as the oracle."""

from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph_sdk.client import LangGraphClient
from tests.support.temporal import TemporalProcess, free_ports

from agentvisor.host.app import Host, running_host
from agentvisor.host.config import load_config
from agentvisor.host.temporal_client import connect

AGENTS = Path(__file__).parent / "agents.py"
GRAPHS = ("line", "failing", "nested", "deep", "keeping", "fanning", "gating")


CHANGING = """\
from langgraph.graph import MessagesState, StateGraph

agent = StateGraph(MessagesState)
agent.add_sequence([("{node}", lambda state: {{}})])
agent.set_entry_point("{node}")
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state-host")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def host(temporal: TemporalProcess, folder: Path) -> AsyncGenerator[Host]:
    (folder / "changing.py").write_text(CHANGING.format(node="before"))
    (folder / "hanging.py").write_text("import time\n\n\ndef agent():\n    time.sleep(600)\n")
    (folder / "broken.py").write_text("import no_such_module\n\nagent = 1\n")
    named = [f"  {name}: {AGENTS}:{name}" for name in GRAPHS]
    named += [f"  plain: {AGENTS}:plain", "  broken: ./broken.py:agent"]
    named += ["  changing: ./changing.py:agent", "  hanging: ./hanging.py:agent"]
    (folder / "agentvisor.yaml").write_text("\n".join(["agents:", *named, ""]))
    settings = {
        "http.port": free_ports(1)[0],
        "temporal.task_queue": f"state-{uuid4()}",
        "temporal.run_restart.initial_backoff": "50ms",
    }
    config = load_config(folder, environ={}, overrides=settings)
    async with running_host(config, await connect(temporal.address, "default")) as host:
        yield host


class Remote:
    """A thread on the host, by LangGraph's client."""

    def __init__(self, sdk: LangGraphClient, graph: str, thread_id: str) -> None:
        self.sdk, self.graph, self.id = sdk, graph, thread_id

    async def run(self, given: Any = None, *, at: Mapping[str, Any] | None = None, **options: Any) -> None:
        await self.sdk.runs.wait(self.id, self.graph, input=given, checkpoint=at, raise_error=False, **options)  # type: ignore[call-overload]

    async def resume(self, answer: Any, *, at: Mapping[str, Any] | None = None) -> None:
        await self.run(command={"resume": answer}, at=at)

    async def update(self, values: Any, as_node: str | None = None, *, at: Mapping[str, Any] | None = None) -> Any:
        return await self.sdk.threads.update_state(self.id, values, as_node=as_node, checkpoint=at)  # type: ignore[arg-type]

    async def history(self, namespace: str = "") -> list[dict[str, Any]]:
        checkpoint = {"checkpoint_ns": namespace} if namespace else None
        return [*await self.sdk.threads.get_history(self.id, limit=100, checkpoint=checkpoint)]  # type: ignore[arg-type, list-item]

    async def state(self, at: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return dict(await self.sdk.threads.get_state(self.id, checkpoint=at, subgraphs=True))  # type: ignore[arg-type]


class InProcess:
    """The same on LangGraph's own saver, with snapshots as the server shows them."""

    def __init__(self, builder: StateGraph[Any], thread_id: str) -> None:
        self.graph = builder.compile(checkpointer=InMemorySaver())
        self.id = thread_id

    def _config(self, at: Mapping[str, Any] | None = None) -> Any:
        return {"configurable": {"thread_id": self.id, **(at or {})}}

    async def run(self, given: Any = None, *, at: Mapping[str, Any] | None = None) -> None:
        await self.graph.ainvoke(given, self._config(at), durability="sync")

    async def resume(self, answer: Any, *, at: Mapping[str, Any] | None = None) -> None:
        from langgraph.types import Command

        await self.graph.ainvoke(Command(resume=answer), self._config(at), durability="sync")

    async def update(self, values: Any, as_node: str | None = None, *, at: Mapping[str, Any] | None = None) -> Any:
        reached = await self.graph.aupdate_state(self._config(at), values, as_node)
        return {"checkpoint": reached["configurable"]}

    async def history(self, namespace: str = "") -> list[dict[str, Any]]:
        config = self._config({"checkpoint_ns": namespace})
        return [_shown(one) async for one in self.graph.aget_state_history(config, limit=100)]

    async def state(self, at: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return _shown(await self.graph.aget_state(self._config(at), subgraphs=True))


def _shown(snapshot: Any) -> dict[str, Any]:
    """A snapshot as the API shows it."""
    return {
        "values": snapshot.values,
        "next": [*snapshot.next],
        "metadata": snapshot.metadata,
        "checkpoint": snapshot.config["configurable"],
        "parent_checkpoint": snapshot.parent_config and snapshot.parent_config["configurable"],
        "tasks": [
            {
                "name": task.name,
                "interrupts": [{"value": one.value} for one in task.interrupts],
                "result": task.result,
                "state": _shown(task.state) if hasattr(task.state, "values") and hasattr(task.state, "next") else None,
            }
            for task in snapshot.tasks
        ],
    }


Travel = Callable[[Any], Any]


@pytest.fixture
def travellers(sdk: LangGraphClient) -> Callable[[str], Any]:
    """A thread of a graph on the host, and one of the same graph in this process."""

    async def make(graph: str) -> tuple[Remote, InProcess]:
        from tests.host.http.state import agents

        thread_id = str(uuid4())
        await sdk.threads.create(thread_id=thread_id, metadata={"graph_id": graph})
        return Remote(sdk, graph, thread_id), InProcess(getattr(agents, graph), thread_id)

    return make


def normal(states: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """States without what differs from run to run: checkpoints by their age, tasks by their names."""
    ids = sorted({one["checkpoint"]["checkpoint_id"] for one in states})
    age = {checkpoint_id: number for number, checkpoint_id in enumerate(ids)}
    return [_normal(one, age) for one in states]


def _normal(state: Mapping[str, Any], age: Mapping[str, int]) -> dict[str, Any]:
    parent = state["parent_checkpoint"]
    return {
        # An accumulating channel that nothing has reached is absent on the server (docs/compatibility.md).
        "values": {name: value for name, value in state["values"].items() if value != []},
        # Their order says nothing: they run side by side.
        "next": sorted(state["next"]),
        "id": age.get(state["checkpoint"]["checkpoint_id"]),
        "parent": parent and age.get(parent["checkpoint_id"]),
        "metadata": {name: (state["metadata"] or {}).get(name) for name in ("source", "step")},
        "ancestors": [*(state["metadata"] or {}).get("parents", {})] and len((state["metadata"] or {})["parents"]),
        "map": len(state["checkpoint"].get("checkpoint_map") or {}),
        "tasks": [
            {
                "name": task["name"],
                "interrupts": [one["value"] for one in task["interrupts"]],
                "result": task["result"],
                "state": task["state"] and _normal(task["state"], {}),
            }
            for task in sorted(state["tasks"], key=lambda task: (task["name"], str(task["result"])))
        ],
    }
