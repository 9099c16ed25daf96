"""An ordinary LangGraph agent: rounds of tasks side by side, each of which has a side effect.

What it does, and what it was told to be durable, it writes outside, where its death cannot undo it: one line each,
appended and synced. Its checkpointer is AgentVisor's own, and only listens to what that says.
"""

import json
import operator
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt

from agentvisor.langgraph import AgentVisorCheckpointer


class Asked(TypedDict):
    """The input of one run."""

    rounds: int
    width: int
    seconds: float
    asks: bool


class State(TypedDict, total=False):
    asked: Asked
    round: int
    done: Annotated[list[str], operator.add]


class Task(TypedDict):
    name: str
    seconds: float


def note(what: str, **facts: object) -> None:
    """Append a line; one write call, so that the lines of several processes do not mix."""
    thread, run = os.environ["AGENTVISOR_THREAD_ID"], os.environ["AGENTVISOR_RUN_ID"]
    who = {"run": run, "attempt": int(os.environ["AGENTVISOR_ATTEMPT"]), "pid": os.getpid()}
    line = json.dumps({"what": what, **facts, **who, "at": time.time()})
    path = Path(os.environ["TORTURE_RECORDS"]) / f"{thread}.jsonl"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, f"{line}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)


class Listening(AgentVisorCheckpointer):
    """Notes what was acknowledged, after it was."""

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        named = await super().aput(config, checkpoint, metadata, new_versions)
        parent = config["configurable"].get("checkpoint_id")
        note("stored", checkpoint=checkpoint["id"], parent=parent, step=metadata["step"])
        return named

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await super().aput_writes(config, writes, task_id, task_path)
        note("written", checkpoint=config["configurable"]["checkpoint_id"], task=task_id)


def task(name: str, config: RunnableConfig, seconds: float) -> None:
    """The side effect; between its two lines a kill is allowed to have it done again."""
    which = {"name": name, "task": config["configurable"]["__pregel_task_id"]}
    note("started", **which)
    time.sleep(seconds)
    note("returning", **which)


def plan(state: State, config: RunnableConfig) -> State:
    number = state.get("round", 0) + 1
    task(f"{os.environ['AGENTVISOR_RUN_ID']} {number} plan", config, 0)
    return {"round": number}


def fan_out(state: State) -> list[Send]:
    asked = state["asked"]
    # Of different lengths, so that a kill finds some of them finished and some not.
    each = asked["seconds"] / asked["width"]
    run = os.environ["AGENTVISOR_RUN_ID"]
    names = [f"{run} {state['round']} {number}" for number in range(asked["width"])]
    return [Send("work", Task(name=name, seconds=each * (at + 1))) for at, name in enumerate(names)]


def work(given: Task, config: RunnableConfig) -> State:
    task(given["name"], config, given["seconds"])
    return {"done": [given["name"]]}


def join(state: State, config: RunnableConfig) -> State:
    task(f"{os.environ['AGENTVISOR_RUN_ID']} {state['round']} join", config, 0)
    return {}


def ask(_: State) -> State:
    answer = interrupt("Go on?")
    # In the run that brings the answer.
    return {"done": [f"{os.environ['AGENTVISOR_RUN_ID']} heard {answer}"]}


def more(state: State) -> str:
    if state["round"] < state["asked"]["rounds"]:
        return "plan"
    return "ask" if state["asked"]["asks"] else END


builder = StateGraph(State)
builder.add_node("plan", plan)
builder.add_node("work", work)
builder.add_node("join", join)
builder.add_edge(START, "plan")
builder.add_conditional_edges("plan", fan_out, ["work"])
builder.add_edge("work", "join")
builder.add_node("ask", ask)
builder.add_conditional_edges("join", more, ["plan", "ask", END])
builder.add_edge("ask", END)
graph = builder.compile(checkpointer=Listening())

if "AGENTVISOR_RUN_ID" in os.environ:
    note("began")
