"""Every method of LangGraph's client, each with a test of what it does."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import uuid4

from langgraph_sdk.client import LangGraphClient
from tests.support.waiting import until

Test = Callable[["Client"], Awaitable[None]]
TESTS: dict[str, Test] = {}
PARTS = ("assistants", "threads", "runs", "crons", "store")


class Client:
    """LangGraph's client, and what its tests begin with."""

    def __init__(self, client: LangGraphClient, folder: Path) -> None:
        self.assistants, self.threads, self.runs = client.assistants, client.threads, client.runs
        self.crons, self.store = client.crons, client.store
        self.mark = {"mark": f"mark-{uuid4().hex[:12]}"}
        self.gate = folder / f"gate-{uuid4().hex[:8]}"

    async def thread(self, agent: str = "", count: int = 1) -> str:
        """A new thread, on which the agent has run."""
        named = (await self.threads.create(metadata=self.mark))["thread_id"]
        if agent:
            await self.runs.wait(named, agent, input={"count": count})
        return named

    async def live(self, thread: str | None = None) -> tuple[str, str]:
        """A thread and its run that waits at the gate."""
        thread = thread or await self.thread()
        run = await self.runs.create(thread, "waiting", input={"count": 1, "gate": str(self.gate)})
        await until(self.gate.with_suffix(".started").exists)
        return thread, run["run_id"]

    async def status(self, thread: str, run: str) -> str:
        """The run's status once it has ended."""
        status = ""

        async def ended() -> bool:
            nonlocal status
            status = (await self.runs.get(thread, run))["status"]
            return status not in ("pending", "running")

        await until(ended)
        return status

    async def assistant(self, name: str) -> str:
        """The assistant of an agent."""
        [found] = await self.assistants.search(graph_id=name, metadata={"created_by": "system"})
        return found["assistant_id"]


def of(method: str) -> Callable[[Test], Test]:
    """The test of `part.method`."""

    def named(test: Test) -> Test:
        assert method not in TESTS, method
        TESTS[method] = test
        return test

    return named


def methods(client: LangGraphClient) -> set[str]:
    """What the installed client has."""
    return {
        f"{part}.{name}"
        for part in PARTS
        for name, member in inspect.getmembers(type(getattr(client, part)), inspect.isfunction)
        if not name.startswith("_")
    }
