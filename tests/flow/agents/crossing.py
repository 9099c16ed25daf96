"""Tries every call of the saver, and the raw protocol, on a thread that is not the run's."""

import asyncio
import os
from collections.abc import Callable
from typing import Any, TypedDict

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, StateGraph

from agentvisor.client.connection import connect
from agentvisor.langgraph import AgentVisorCheckpointer
from agentvisor.protocol.v1 import store_pb2


class State(TypedDict, total=False):
    word: str


def _graph() -> Any:
    builder = StateGraph(State)
    builder.add_node("echo", lambda state: {"word": state["word"] + "!"})
    builder.add_edge(START, "echo")
    builder.add_edge("echo", END)
    return builder.compile(checkpointer=AgentVisorCheckpointer())


def saver_calls(other: str) -> dict[str, str]:
    """What each call answers, "Class: message"."""
    saver, graph = AgentVisorCheckpointer(), _graph()
    config: Any = {"configurable": {"thread_id": other, "checkpoint_ns": ""}}
    at_checkpoint: Any = {"configurable": {**config["configurable"], "checkpoint_id": "c"}}
    return {
        "invoke": _said(lambda: graph.invoke({"word": "hi"}, config)),
        "get_state": _said(lambda: graph.get_state(config)),
        "update_state": _said(lambda: graph.update_state(config, {"word": "x"})),
        "put": _said(lambda: saver.put(config, empty_checkpoint(), {}, {})),
        "aput": _said(lambda: asyncio.run(saver.aput(config, empty_checkpoint(), {}, {}))),
        "put_writes": _said(lambda: saver.put_writes(at_checkpoint, [("word", "x")], "task")),
        "get_tuple": _said(lambda: saver.get_tuple(config)),
        "list": _said(lambda: list(saver.list(config))),
        "delete_thread": _said(lambda: saver.delete_thread(other)),
        "prune": _said(lambda: saver.prune([other])),
        "copy_thread": _said(lambda: saver.copy_thread(os.environ["AGENTVISOR_THREAD_ID"], other)),
        "copy_thread from": _said(lambda: saver.copy_thread(other, os.environ["AGENTVISOR_THREAD_ID"])),
        "history": _said(lambda: saver.get_delta_channel_history(config=config, channels=["word"])),
    }


def raw_calls(other: str) -> dict[str, str]:
    """The same past the SDK's own check: requests as a guest that means harm would send them."""
    requests = {
        "put": store_pb2.StoreRequest(put=store_pb2.PutCheckpoint(checkpoint=store_pb2.Checkpoint(checkpoint_id="x"))),
        "get": store_pb2.StoreRequest(get=store_pb2.GetCheckpoint()),
        "list": store_pb2.StoreRequest(list=store_pb2.ListCheckpoints()),
        "get_blobs": store_pb2.StoreRequest(get_blobs=store_pb2.GetBlobs(keys=[b"x" * 32])),
        "delete_thread": store_pb2.StoreRequest(delete_thread=store_pb2.DeleteThread()),
        "copy_thread": store_pb2.StoreRequest(copy_thread=store_pb2.CopyThread(target_thread_id=other)),
        "copy_thread from": store_pb2.StoreRequest(copy_thread=store_pb2.CopyThread(target_thread_id="t")),
        "prune": store_pb2.StoreRequest(prune=store_pb2.PruneThread(strategy="delete")),
        "delta_history": store_pb2.StoreRequest(delta_history=store_pb2.DeltaHistory(channels=["word"])),
        "put_part": store_pb2.StoreRequest(put_part=store_pb2.PutPart(upload=b"u", data=b"x", total=1)),
        "get_part": store_pb2.StoreRequest(get_part=store_pb2.GetPart(key=b"x" * 32)),
        "delete_for_runs": store_pb2.StoreRequest(delete_for_runs=store_pb2.DeleteForRuns(run_ids=["r"])),
        "list of all threads": store_pb2.StoreRequest(list=store_pb2.ListCheckpoints(all_threads=True)),
    }
    answers: dict[str, str] = {}
    for name, request in requests.items():
        if name not in ("copy_thread", "delete_for_runs", "list of all threads"):
            request.thread_id = other
        reply = connect().transport.submit(request).result(timeout=10)
        done = f"{len(reply.listed.checkpoints)} checkpoints" if reply.HasField("listed") else "done"
        answers[name] = f"{reply.error.code}: {reply.error.message}" if reply.HasField("error") else done
    return answers


def own_thread_by_name() -> Any:
    """A thread id that is passed and is the run's own."""
    config: Any = {"configurable": {"thread_id": os.environ["AGENTVISOR_THREAD_ID"]}}
    return _graph().invoke({"word": "hi"}, config)


def every_checkpoint() -> list[str]:
    """The threads of all that a list without a config finds."""
    _graph().invoke({"word": "hi"})
    found = list(AgentVisorCheckpointer().list(None))
    return sorted({one.config["configurable"]["thread_id"] for one in found})


def _said(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        return f"{type(error).__name__}: {error}"
    return "done"
