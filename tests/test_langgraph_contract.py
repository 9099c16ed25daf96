"""The checkpointer keeps every law of LangGraph's contract, over both ways to a host, and in its asynchronous twins."""

import pytest
from tests.langgraph_contract import LAWS, Law, Twin
from tests.langgraph_saver import double, saver, transport, way

from agentvisor.langgraph import AgentVisorCheckpointer

__all__ = ["double", "saver", "transport", "way"]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_law_holds(law: Law, saver: AgentVisorCheckpointer) -> None:
    law(saver, "t")
    law(Twin(saver), "twin")
