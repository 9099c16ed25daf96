"""What an agent is, is told from the agent, without importing a framework that it does not use."""

import subprocess
import sys
from functools import partial
from typing import Any

import pytest
from google.adk import agents as adk
from google.adk.apps import App
from google.adk.workflow import Workflow
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from strands import Agent
from strands.multiagent import GraphBuilder, Swarm
from tests.guest.agents import graphs, plain, strands_made

from agentvisor.core.errors import InvalidInput
from agentvisor.guest.runner import runner_for
from agentvisor.guest.telling import told_framework
from agentvisor.testing.strands import ScriptedModel


def annotated(options: dict[str, Any]) -> CompiledStateGraph:
    raise NotImplementedError


def annotated_as_text(options: dict[str, Any]) -> "StateGraph[Any]":
    raise NotImplementedError


class Maker:
    def __call__(self, config: dict[str, Any]) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    "agent",
    [
        Maker(),
        partial(annotated, {}),
        graphs.graph,
        graphs.builder,
        graphs.factory,
        graphs.async_factory,
        graphs.managed_factory,
        annotated,
        annotated_as_text,
    ],
)
def test_graphs_and_what_makes_them_are_langgraphs(agent: Any) -> None:
    assert told_framework(agent) == "langgraph"


def makes_an_agent() -> adk.Agent:
    raise NotImplementedError


async def makes_an_app() -> "App":
    raise NotImplementedError


AGENT = adk.Agent(name="a", model="none")


@pytest.mark.parametrize(
    "agent",
    [AGENT, App(name="a", root_agent=AGENT), Workflow(name="a", edges=[]), makes_an_agent, makes_an_app],
    ids=["agent", "app", "workflow", "factory", "async_factory"],
)
def test_agents_of_adk_and_what_makes_them_are_adks(agent: Any) -> None:
    assert told_framework(agent) == "adk"


class Callable:
    def __call__(self, input: Any) -> Any: ...


@pytest.mark.parametrize("agent", [plain.echo, plain.coroutine, plain.with_context, lambda x: x, Callable(), 7, len])
def test_everything_else_is_a_plain_agent(agent: Any) -> None:
    assert told_framework(agent) == "function"


def test_strands_agents_and_what_makes_them_are_strands() -> None:
    for made in (strands_made.said, strands_made.unsaid, strands_made.unsaid_later):
        assert told_framework(made) == "strands"
    model = ScriptedModel([])
    assert told_framework(strands_made.plain) == "function"
    for agent in (Agent(model=model), Swarm([Agent(model=model)]), GraphBuilder(), made_as_text):
        assert told_framework(agent) == "strands"


def made_as_text() -> "Swarm":
    raise NotImplementedError


def test_a_framework_that_is_not_known_is_named() -> None:
    with pytest.raises(InvalidInput, match="framework 'langraph' is not known"):
        runner_for("langraph", plain.echo)


def test_a_plain_agent_loads_no_framework() -> None:
    code = (
        "import sys; from agentvisor.guest.runner import runner_for; runner_for('', lambda input: input); "
        "sys.exit(any(name in sys.modules for name in ('langgraph', 'google.adk', 'grpc')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
