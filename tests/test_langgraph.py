"""The checkpointer keeps LangGraph's contract over both ways to a host."""

from collections.abc import AsyncGenerator

from tests.client.hosts import way, way_to
from tests.client.store_double import StoreDouble
from tests.langgraph_conformance import assert_conforms

from agentvisor.langgraph import AgentVisorCheckpointer

__all__ = ["way"]


async def test_langgraphs_own_conformance_suite_passes(way: str) -> None:
    async def fresh_saver() -> AsyncGenerator[AgentVisorCheckpointer]:
        with way_to(StoreDouble(), way) as transport:
            yield AgentVisorCheckpointer(transport=transport)

    await assert_conforms(fresh_saver)
