"""A graph that does not wait for its checkpoints gets a few steps ahead of a slow store, and no more."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.guest.hosting import AGENTS, Hosting, Kept, configured

from agentvisor.core.ids import ROOT
from agentvisor.core.owners import EVERYONE
from agentvisor.guest.runners.langgraph_backlog import MOST
from agentvisor.host.guests import Guests
from agentvisor.protocol.v1.guest_pb2 import AgentTask
from agentvisor.protocol.v1.run_pb2 import Ending, RunSpec
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.flow]

STEPS = 200
SLOW_SECONDS = 0.01
GIVEN = json.dumps({"messages": [], "steps": 0}).encode()
CONFIG = json.dumps({"recursion_limit": STEPS + 1}).encode()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Hosting]:
    folder = tmp_path_factory.mktemp("guests")
    agents = {
        "hurries": {"entrypoint": f"{AGENTS}/graphs.py:hurries", "env": {"TEST_LOG": str(folder / "hurries")}},
    }
    async with Guests(configured(folder, agents)) as guests:
        hosting = Hosting(guests)
        hosting.folder = folder
        yield hosting


class Slow(Kept):
    """A store that takes its time over each checkpoint, longer than a step takes; it may refuse one."""

    def __init__(self, host: Hosting, thread: str, refuses: int = 0) -> None:
        super().__init__(host.thread(thread))
        self.steps = Path(f"{host.folder / 'hurries'}.steps")
        self.refuses = refuses
        self.puts = 0
        self.ahead: list[int] = []
        """At each put: the steps that the graph has done, less those whose checkpoints came so far."""

    async def call(self, request: StoreRequest) -> StoreReply:
        if request.WhichOneof("kind") != "put":
            return await super().call(request)
        self.puts += 1
        # The first checkpoint is that of the input.
        self.ahead.append(self._done() - (self.puts - 2))
        if self.puts == self.refuses:
            reply = StoreReply()
            reply.error.code = "state_too_large"
            reply.error.message = "no room"
            return reply
        await asyncio.sleep(SLOW_SECONDS)
        return await super().call(request)

    def _done(self) -> int:
        text = self.steps.read_text() if self.steps.exists() else ""
        return int(text or 0)


async def run(host: Hosting, kept: Slow, durability: str) -> Ending.ValueType:
    kept.steps.unlink(missing_ok=True)
    spec = RunSpec(agent="hurries", run_id="r", input=GIVEN, config=CONFIG, durability=durability)
    task = AgentTask(thread_id=kept.thread.thread_id, run_id="r", attempt=1, spec=spec)
    running = await host.guests.start_agent("hurries", task, kept, owner=EVERYONE)
    return (await asyncio.wait_for(running.ended, 90)).ending


async def test_a_fast_graph_on_a_slow_store_is_held_back_and_ends_with_every_checkpoint_stored(host: Hosting) -> None:
    kept = Slow(host, "slow")
    assert await run(host, kept, "async") == Ending.ENDING_COMPLETED
    # It gets ahead, which is what "async" is for; one step begins while the runner hears of the last.
    assert 1 < max(kept.ahead) <= MOST + 2
    assert kept.puts == STEPS + 2
    assert len(kept.thread.store.checkpoints[ROOT]) > 0


async def test_a_graph_that_waits_for_its_checkpoints_is_never_ahead(host: Hosting) -> None:
    kept = Slow(host, "waits")
    assert await run(host, kept, "sync") == Ending.ENDING_COMPLETED
    assert max(kept.ahead) <= 1


async def test_a_checkpoint_that_is_refused_ends_the_run_and_holds_nothing_back_for_ever(host: Hosting) -> None:
    kept = Slow(host, "refused", refuses=20)
    assert await run(host, kept, "async") == Ending.ENDING_AGENT_ERROR
    assert kept.puts == 20
