"""Runs the product page's code, with what the page leaves open: the state, the node, the messages."""

import asyncio
import operator
import os
import runpy
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, StateGraph

from agentvisor.langgraph import AgentVisorCheckpointer


class MyState(TypedDict, total=False):
    messages: Annotated[list[str], operator.add]
    step_count: int


class AgentState(TypedDict, total=False):
    pending_action: str
    approved: bool


def process_node(state: MyState) -> MyState:
    return {"messages": [f"answer to {state['messages'][-1]}"], "step_count": state.get("step_count", 0) + 1}


def first_example() -> Any:
    return _run("first_example.py")["result"]


def first_example_somewhere(where: str) -> Any:
    """The example in a task, in a thread, in a pool's thread, and in a task of a loop in a thread."""
    return _SOMEWHERE[where](first_example)


def recovery_test() -> str:
    names = _run("first_example.py") | {"thread_id": os.environ["AGENTVISOR_THREAD_ID"]}
    _run("recovery_test.py", names)["test_recovery"]()
    return "passed"


def human_review_graph() -> Any:
    builder = StateGraph(AgentState)
    builder.add_node("human_review", _run("human_review.py")["human_review"])
    builder.add_edge(START, "human_review")
    builder.add_edge("human_review", END)
    return builder.compile()


def metadata_examples() -> dict[str, Any]:
    """Both examples, the good one stored, the bad one refused; returns what is said and what is there afterwards."""
    text = (Path(os.environ["FOLDER"]) / "metadata.py").read_text()
    good, bad = text.split("# Bad")
    saver = AgentVisorCheckpointer()
    stored = saver.put({"configurable": {}}, empty_checkpoint(), _metadata(good), {})
    try:
        saver.put(stored, empty_checkpoint(), _metadata(bad), {})
    except ValueError as error:
        refused = str(error)
    else:
        refused = ""
    return {"refused": refused, "stored": [dict(one.metadata) for one in saver.list({"configurable": {}})]}


def _metadata(code: str) -> Any:
    names: dict[str, Any] = {"my_function": process_node}
    exec(compile(code.partition("\n")[2], "metadata.py", "exec"), names)
    return names["metadata"]


def _run(file: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    given = {"MyState": MyState, "AgentState": AgentState, "process_node": process_node, **(names or {})}
    return runpy.run_path(str(Path(os.environ["FOLDER"]) / file), given)


async def _in_a_task(work: Callable[[], Any]) -> Any:
    async def task() -> Any:
        return work()

    return await asyncio.create_task(task())


def _in_a_thread(work: Callable[[], Any]) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def _in_a_pool(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(2) as pool:
        return pool.submit(work).result()


_SOMEWHERE: dict[str, Callable[[Callable[[], Any]], Any]] = {
    "a task": lambda work: asyncio.run(_in_a_task(work)),
    "asyncio.to_thread": lambda work: asyncio.run(asyncio.to_thread(work)),
    "a thread": _in_a_thread,
    "a pool": _in_a_pool,
    "a task of a thread's loop": lambda work: _in_a_thread(lambda: asyncio.run(_in_a_task(work))),
}
