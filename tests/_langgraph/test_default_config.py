"""`graph.invoke({...})` without a config runs on the run's own thread, wherever in the agent process it is called."""

import pytest
from tests.client.agent_process import run_agent
from tests.client.store_double import StoreDouble

pytestmark = pytest.mark.thorough

GRAPH = """
import asyncio, contextvars, threading
from concurrent.futures import ThreadPoolExecutor
from operator import add
from typing import Annotated, TypedDict
from langgraph.graph import StateGraph, START, END
from agentvisor.langgraph import AgentVisorCheckpointer

class State(TypedDict):
    items: Annotated[list, add]

def build(node=lambda state: {"items": ["node"]}):
    builder = StateGraph(State)
    builder.add_node("process", node)
    builder.set_entry_point("process")
    return builder.compile(checkpointer=AgentVisorCheckpointer())

graph = build()
"""


CALLS = {
    "main thread": "graph.invoke({'items': ['in']})",
    "stream": "list(graph.stream({'items': ['in']}))",
    "coroutine": "asyncio.run(graph.ainvoke({'items': ['in']}))",
    "task": """
async def main():
    await asyncio.create_task(graph.ainvoke({'items': ['in']}))
asyncio.run(main())
""",
    "to_thread": """
async def main():
    await asyncio.to_thread(graph.invoke, {'items': ['in']})
asyncio.run(main())
""",
    "the loop's executor": """
async def main():
    await asyncio.get_running_loop().run_in_executor(None, graph.invoke, {'items': ['in']})
asyncio.run(main())
""",
    "thread": """
thread = threading.Thread(target=graph.invoke, args=({'items': ['in']},))
thread.start(); thread.join()
""",
    "thread with a run method of its own": """
class Worker(threading.Thread):
    def run(self):
        graph.invoke({'items': ['in']})
worker = Worker(); worker.start(); worker.join()
""",
    "loop in a thread": """
thread = threading.Thread(target=lambda: asyncio.run(graph.ainvoke({'items': ['in']})))
thread.start(); thread.join()
""",
    "timer": """
timer = threading.Timer(0, graph.invoke, args=({'items': ['in']},))
timer.start(); timer.join()
""",
    "executor": """
with ThreadPoolExecutor() as pool:
    pool.submit(graph.invoke, {'items': ['in']}).result()
""",
    "a config without configurable": "graph.invoke({'items': ['in']}, {'recursion_limit': 5})",
    "a configurable without thread id": "graph.invoke({'items': ['in']}, {'configurable': {'user': 'u'}})",
    "the own thread id": "graph.invoke({'items': ['in']}, {'configurable': {'thread_id': 'own'}})",
}


def test_a_graph_without_a_thread_id_runs_on_the_own_thread() -> None:
    double = StoreDouble()
    program = f"""{GRAPH}
last = []
for name, call in {CALLS!r}.items():
    exec(call)
    items = graph.get_state({{"configurable": {{"thread_id": "own"}}}}).values["items"]
    assert items == last + ["in", "node"], (name, items)
    last = items
    print(name)
"""
    assert run_agent(program, double).splitlines() == list(CALLS)
    assert set(double.threads) == {"own"}
    assert set(double.threads["own"].store.checkpoints) == {""}


def test_the_page_s_second_run_goes_on_where_the_first_ended() -> None:
    program = f"""{GRAPH}
result1 = graph.invoke({{"items": ["a"]}})
new_graph = build()
result2 = new_graph.invoke({{"items": ["b"]}}, config={{"configurable": {{"thread_id": "own"}}}})
print(result2["items"])
"""
    assert run_agent(program, StoreDouble()) == "['a', 'node', 'b', 'node']\n"


def test_subgraphs_keep_their_namespaces_and_their_own_configs() -> None:
    program = f"""{GRAPH}
from langgraph.config import get_config
seen = []
inner_builder = StateGraph(State)
def inner_node(state):
    seen.append(get_config()["configurable"]["checkpoint_ns"])
    return {{"items": ["inner"]}}
inner_builder.add_node("inner", inner_node)
inner_builder.set_entry_point("inner")
inner = inner_builder.compile()
outer = build(lambda state: {{"items": inner.invoke({{"items": []}})["items"]}})
print(outer.invoke({{"items": []}})["items"])
assert seen[0].startswith("process:") and "|inner:" in seen[0], seen
"""
    double = StoreDouble()
    assert run_agent(program, double) == "['inner']\n"
    namespaces = sorted(double.threads["own"].store.checkpoints)
    assert namespaces[0] == ""
    assert [name.partition(":")[0] for name in namespaces[1:]] == ["process"]


def test_what_a_node_has_set_stays_and_is_not_handed_to_threads() -> None:
    program = f"""{GRAPH}
from langchain_core.runnables.config import var_child_runnable_config as var
seen = {{}}
def node(state):
    AgentVisorCheckpointer()
    seen["node"] = "checkpoint_ns" in var.get()["configurable"]
    thread = threading.Thread(target=lambda: seen.update(thread=var.get()))
    thread.start(); thread.join()
    return {{"items": []}}
build(node).invoke({{"items": []}})
print(seen["node"], seen["thread"], var.get())
"""
    default = "{'configurable': {'thread_id': 'own'}}"
    assert run_agent(program, StoreDouble()) == f"True {default} {default}\n"


def test_installing_again_changes_nothing_and_threads_end_as_they_did() -> None:
    program = f"""{GRAPH}
from agentvisor.langgraph import install_default_config
start = threading.Thread.start
for _ in range(3):
    install_default_config("own")
assert threading.Thread.start is start
class Odd(threading.Thread):
    def __init__(self):
        super().__init__()
        self.run = lambda: print("ran")
odd = Odd(); odd.start(); odd.join()
thread = threading.Thread(target=print, args=("target",)); thread.start(); thread.join()
try:
    thread.start()
except RuntimeError as error:
    print(error)
caught = []
threading.excepthook = lambda args: caught.append(args.exc_type.__name__)
failing = threading.Thread(target=lambda: 1 / 0); failing.start(); failing.join()
print(caught)
"""
    shown = run_agent(program, StoreDouble())
    assert shown == "ran\ntarget\nthreads can only be started once\n['ZeroDivisionError']\n"


def test_another_thread_is_refused() -> None:
    program = f"""{GRAPH}
for call in (
    lambda: graph.invoke({{"items": []}}, {{"configurable": {{"thread_id": "other"}}}}),
    lambda: asyncio.run(graph.ainvoke({{"items": []}}, {{"configurable": {{"thread_id": "other"}}}})),
    lambda: graph.get_state({{"configurable": {{"thread_id": "other"}}}}),
    lambda: list(graph.checkpointer.list({{"configurable": {{"thread_id": "other"}}}})),
    lambda: graph.checkpointer.delete_thread("other"),
):
    try:
        call()
    except PermissionError as error:
        print(error)
"""
    double = StoreDouble()
    shown = run_agent(program, double).splitlines()
    assert shown == ["this agent runs on thread own and may not use thread 'other': leave thread_id out"] * 5
    assert double.requests == []


def test_outside_a_guest_nothing_is_installed() -> None:
    program = """
import os; del os.environ["AGENTVISOR_THREAD_ID"]
import threading
start = threading.Thread.start
from agentvisor.langgraph import AgentVisorCheckpointer
from langchain_core.runnables.config import var_child_runnable_config as var
AgentVisorCheckpointer()
print(var.get(), threading.Thread.start is start)
"""
    assert run_agent(program, StoreDouble()) == "None True\n"
