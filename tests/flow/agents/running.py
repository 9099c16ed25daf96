"""Agents that ask what run they are in, and say how they are getting on, from all the places that agents have."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

import agentvisor
from agentvisor.core.errors import ValueTooLarge


def told() -> dict[str, Any]:
    run = agentvisor.current_run()
    left = run.time_left()
    return {
        "thread": run.thread_id,
        "run": run.run_id,
        "attempt": run.attempt,
        "agent": run.agent,
        "metadata": run.metadata,
        "is_restart": run.is_restart,
        "minutes_left": None if left is None else round(left.total_seconds() / 60),
    }


def _in_a_thread(work: Callable[[], Any]) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


async def _in_coroutines() -> list[Any]:
    return [await asyncio.to_thread(told), *await asyncio.gather(*(asyncio.sleep(0, told()) for _ in range(2)))]


def everywhere() -> list[Any]:
    """What each place is told; they are all alike."""
    with ThreadPoolExecutor(1) as pool:
        return [told(), _in_a_thread(told), pool.submit(told).result(), *asyncio.run(_in_coroutines())]


def dies_once() -> Any:
    if not agentvisor.current_run().is_restart:
        os.kill(os.getpid(), signal.SIGKILL)
    return told()


def in_a_child() -> str:
    """What a process that the agent starts is told: it has the agent's environment, and not its channel."""
    code = "import agentvisor; agentvisor.current_run()"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr


_ODD: dict[str, Callable[[], Any]] = {"a set": lambda: {"in": [{1}]}, "much": lambda: "x" * 5_000_000}


def says(given: list[Any]) -> list[str]:
    """What became of each progress event."""
    answers: list[str] = []
    for value in given:
        try:
            agentvisor.progress(_ODD[value]() if isinstance(value, str) else value)
            answers.append("said")
        except (ValueError, ValueTooLarge) as error:
            answers.append(str(error))
    return answers


def says_from_everywhere() -> None:
    agentvisor.progress(0)
    _in_a_thread(lambda: agentvisor.progress(1))
    asyncio.run(_says_from_coroutines())
    agentvisor.progress(4)


async def _says_from_coroutines() -> None:
    agentvisor.progress(2)
    await asyncio.to_thread(agentvisor.progress, 3)


def leaves(text: Any) -> None:
    sys.exit(text)


class State(TypedDict, total=False):
    told: list[Any]
    number: int


def node(state: State) -> State:
    agentvisor.progress({"in": "node"})
    return {"told": [told()]}


async def anode(state: State) -> State:
    agentvisor.progress({"in": "anode"})
    return {"told": [*state["told"], await asyncio.to_thread(told)]}


def worker(state: State) -> None:
    agentvisor.progress({"in": f"worker {state['number']}"})


def leaving(state: State) -> State:
    sys.exit("the graph has had enough")


_inner = StateGraph(State).add_node("anode", anode).add_edge(START, "anode").add_edge("anode", END)


def graph() -> Any:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_node("inner", _inner.compile())
    builder.add_node("worker", worker)
    builder.add_edge(START, "node")
    builder.add_edge("node", "inner")
    builder.add_conditional_edges("inner", lambda _: [Send("worker", {"number": 1})], ["worker"])
    return builder.compile()


def leaving_graph() -> Any:
    return StateGraph(State).add_node("leave", leaving).add_edge(START, "leave").compile()


def strands() -> Any:
    """What a tool of a Strands agent is told; it says so, too."""
    from strands import Agent, tool

    from agentvisor.testing import call
    from agentvisor.testing.strands import ScriptedModel

    @tool
    def look() -> str:
        """Look where this runs."""
        agentvisor.progress({"in": "tool"})
        return json.dumps(told())

    agent = Agent(model=ScriptedModel([call("look"), "done"]), tools=[look], callback_handler=None)
    agent("look")
    (answer,) = [block["toolResult"] for one in agent.messages for block in one["content"] if "toolResult" in block]
    return json.loads(answer["content"][0]["text"])
