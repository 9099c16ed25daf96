"""The laws of LangGraph's contract on a real host and a real Temporal server, as a notebook meets them."""

from collections.abc import Generator
from uuid import uuid4

import pytest
from tests.flow.conftest import Project
from tests.langgraph_contract import LAWS, Law, Twin

from agentvisor.langgraph import AgentVisorCheckpointer

pytestmark = pytest.mark.flow


@pytest.fixture(scope="module")
def saver(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[AgentVisorCheckpointer]:
    project = Project(tmp_path_factory.mktemp("contract"), temporal, "zygote", {})
    host = project.host()
    try:
        yield AgentVisorCheckpointer(endpoint=host.url)
    finally:
        host.stop()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_law_holds(law: Law, saver: AgentVisorCheckpointer) -> None:
    law(saver, f"{law.__name__}-{uuid4()}")
    law(Twin(saver), f"{law.__name__}-{uuid4()}")
