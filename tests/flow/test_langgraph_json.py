"""A LangGraph project, as its own template lays it out, runs with `agentvisor dev` and no other change."""

import json
from collections.abc import Generator
from pathlib import Path
from uuid import uuid4

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from tests.support.host_process import HostProcess

pytestmark = pytest.mark.flow

FILES = {
    "langgraph.json": json.dumps(
        {
            "$schema": "https://langgra.ph/schema.json",
            "dependencies": [".", "./libs/shared", "langchain_core"],
            "graphs": {
                "agent": "./src/agent/graph.py:graph",
                "described": {"path": "./src/agent/graph.py:graph", "description": "the same, described"},
                "made": "./src/agent/graph.py:make_graph",
                "entered": "./src/agent/graph.py:entered_graph",
                "by module": "agent.graph:graph",
            },
            "env": ".env",
            "image_distro": "wolfi",
            "python_version": "3.11",
        }
    ),
    ".env": """\
# secrets of this project
GREETING="hello there"   # quoted
export PLAIN=plain value
EMPTY=
ESCAPED="two\\nlines"
SINGLE='a $NAME # kept'
""",
    "pyproject.toml": '[project]\nname = "agent"\nversion = "0.0.1"\n',
    "src/agent/__init__.py": 'from agent.graph import graph\n\n__all__ = ["graph"]\n',
    "src/agent/nodes.py": """\
import os

from shared_words import WORD


def greet(state, runtime):
    who = (runtime.context or {}).get("who", "nobody")
    names = ("GREETING", "PLAIN", "EMPTY", "ESCAPED", "SINGLE")
    return {"said": [WORD, who], "env": {name: os.environ.get(name) for name in names}}
""",
    "src/agent/graph.py": """\
import operator
from contextlib import asynccontextmanager
from typing import Annotated, TypedDict

from langgraph.graph import StateGraph

from agent.nodes import greet


class Context(TypedDict):
    who: str


class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]
    env: dict[str, str]


builder = StateGraph(State, context_schema=Context).add_node(greet).add_edge("__start__", "greet")
graph = builder.compile(name="New Graph")


def make_graph(config):
    assert config["configurable"]["thread_id"]
    return builder


@asynccontextmanager
async def entered_graph():
    yield builder.compile()
""",
    "libs/shared/shared_words.py": 'WORD = "shared"\n',
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[SyncLangGraphClient]:
    folder = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        file: Path = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    # Not the project's: where the tests' Temporal is shared.
    host = HostProcess(folder, temporal, {"AGENTVISOR_TEMPORAL_TASK_QUEUE": f"json-{uuid4()}"}).start()
    try:
        yield get_sync_client(url=host.url)
    finally:
        host.stop()


@pytest.mark.parametrize("agent", ["agent", "described", "made", "entered", "by module"])
def test_every_form_of_entry_runs_and_keeps_its_state(agent: str, client: SyncLangGraphClient) -> None:
    thread = client.threads.create()["thread_id"]
    client.runs.wait(thread, agent, input={"said": []}, context={"who": "ann"})
    values = client.runs.wait(thread, agent, input={"said": []})
    assert isinstance(values, dict)
    assert values["said"] == ["shared", "ann", "shared", "nobody"]
    assert client.threads.get_state(thread)["values"] == values


def test_the_env_file_is_the_agents_environment(client: SyncLangGraphClient) -> None:
    values = client.runs.wait(None, "agent", input={"said": []})
    assert isinstance(values, dict)
    assert values["env"] == {
        "GREETING": "hello there",
        "PLAIN": "plain value",
        "EMPTY": "",
        "ESCAPED": "two\nlines",
        "SINGLE": "a $NAME # kept",
    }


def test_its_graphs_are_the_assistants(client: SyncLangGraphClient) -> None:
    found = client.assistants.search()
    assert {one["graph_id"] for one in found} == {"agent", "described", "made", "entered", "by module"}
    (agent,) = client.assistants.search(graph_id="agent")
    assert client.assistants.get(agent["assistant_id"])["graph_id"] == "agent"


def test_a_run_without_a_thread_is_streamed(client: SyncLangGraphClient) -> None:
    events = list(client.runs.stream(None, "agent", input={"said": []}, stream_mode=["values", "updates"]))
    assert events[0].event == "metadata"
    assert {one.event for one in events} >= {"values", "updates"}
    assert [one.data for one in events if one.event == "values"][-1]["said"] == ["shared", "nobody"]
