"""Agents that charge a card with `agentvisor.once`, each of another kind; they die where the sign "strike" says.

Signs of the thread: "policy" is on_unknown; "bank" is what the bank says when it is asked ("done", "not done",
"unknown"); "strike" is a place to die at, once. What was charged is counted outside.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypedDict, cast

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

import agentvisor
from agents import signs
from agents.effects import effect
from agentvisor.client.conversation import Paused
from agentvisor.client.socketpair import Channel
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

PLACES = ("before intent", "after intent", "before effect", "after effect", "after done")
UNKNOWN = ("after intent", "before effect", "after effect")
"""Where nobody can tell afterwards whether it happened."""


def strike(place: str, *, wait: bool = False) -> None:
    """Die here where the test says so; once."""
    if signs.read("strike") == place:
        signs.sign("strike").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
        if wait:
            threading.Event().wait()


def _after(answer: Future[StoreReply], act: Callable[[], None]) -> Future[StoreReply]:
    """The answer, which nobody hears before something was done: who waits for a future wakes before its callbacks."""
    heard: Future[StoreReply] = Future()

    def pass_on(_: Future[StoreReply]) -> None:
        act()
        if heard.set_running_or_notify_cancel():
            error = answer.exception()
            if error is not None:
                heard.set_exception(error)
            else:
                heard.set_result(answer.result())

    answer.add_done_callback(pass_on)
    return heard


def _watch() -> None:
    plain = Channel.call

    def call(channel: Channel, request: StoreRequest) -> Future[StoreReply]:
        kind = request.effect.WhichOneof("kind") if request.WhichOneof("kind") == "effect" else None
        if kind == "intend":
            strike("before intent")
        answer = plain(channel, request)
        if kind in ("intend", "result"):
            place = "after intent" if kind == "intend" else "after done"
            return _after(answer, lambda: strike(place))
        return answer

    Channel.call = Channel.submit = call  # type: ignore[method-assign]


_watch()


def charge(name: str) -> dict[str, str]:
    effect(f"tried {name}")
    strike("before effect")
    signs.wait_for("gate") if signs.read("gated") else None
    effect(f"charged {name}")
    strike("after effect")
    return {"charge": name}


async def acharge(name: str) -> dict[str, str]:
    await asyncio.sleep(0)
    return charge(name)


def _bank(name: str) -> Any:
    effect(f"asked the bank {name}")
    match signs.read("bank"):
        case "done":
            return {"charge": name, "by": "bank"}
        case "not done":
            return agentvisor.NOT_DONE
        case _:
            raise agentvisor.UnknownOutcome


def _options(name: str) -> dict[str, Any]:
    policy = {"on_unknown": signs.read("policy")} if signs.read("policy") else {}
    return policy | ({"reconcile": partial(_bank, name)} if signs.read("bank") else {})


def pay(name: str) -> Any:
    paid = agentvisor.once(f"charge:{name}", partial(charge, name), **_options(name))
    effect(f"paid {name}")
    if signs.read("slow"):
        signs.wait_for("gate")
    return paid


async def apay(name: str) -> Any:
    return await agentvisor.once(f"charge:{name}", partial(acharge, name), **_options(name))


# --- plain agents ----------------------------------------------------------------------------------------------------


def plain(given: Any) -> Any:
    effect("began")
    return {"paid": pay("plain"), "given": given}


async def plain_async(given: Any) -> Any:
    effect("began")
    paid = await asyncio.gather(apay("plain"), apay("plain"))
    return {"paid": paid[0], "given": given}


def plain_steps(given: Any) -> Iterator[Any]:
    effect("began")
    yield {"paid": pay("plain"), "given": given}


def _in_a_thread(work: Callable[[], Any]) -> Any:
    """What it returns, or raises, in a thread of its own."""
    result: Future[Any] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001 (it is raised where it is waited for)
            result.set_exception(error)

    threading.Thread(target=run).start()
    return result.result()


def plain_thread(given: Any) -> Any:
    """Careless: it does not see how its thread ends."""
    effect("began")
    paid: list[Any] = []
    thread = threading.Thread(target=lambda: paid.append(pay("plain")))
    thread.start()
    thread.join()
    return {"paid": paid[0], "given": given}


def talks(given: Any) -> Any:
    """Asks twice, with an effect in between that asks a question of its own."""
    effect("began")
    name = agentvisor.interrupt({"ask": "name"})

    def send() -> Any:
        confirmed = agentvisor.interrupt({"ask": "sure"})
        effect(f"sent {name}")
        return {"to": name, "sure": confirmed}

    sent = agentvisor.once("send", send)
    strike("after send")
    rating = agentvisor.interrupt({"ask": "rating"})
    return {"sent": sent, "rating": rating, "given": given}


def asks_two(given: Any) -> Any:
    """Asks two people at once."""
    answers = list[Any]()
    for who in given:
        with suppress(Paused):
            answers.append(agentvisor.interrupt({"ask": who}))
    return answers


# --- graphs ----------------------------------------------------------------------------------------------------------


class State(TypedDict, total=False):
    paid: Any
    answers: list[Any]
    left: Any
    right: Any


def node(state: State) -> State:
    effect("began")
    paid = pay("node")
    strike("after once")
    return {"paid": paid}


async def anode(state: State) -> State:
    effect("began")
    return {"paid": await apay("node")}


def asking(state: State) -> State:
    """Its own questions are before and after the effect."""
    effect("began")
    first = interrupt("first?")
    paid = pay("node")
    second = interrupt("second?")
    return {"paid": paid, "answers": [first, second]}


def confirming(state: State) -> State:
    """The effect asks a question of its own before it happens."""

    def send() -> Any:
        sure = interrupt("sure?")
        effect("sent")
        return {"sure": sure}

    sent = agentvisor.once("send", send)
    rating = interrupt("rating?")
    return {"paid": sent, "answers": [rating]}


def threaded(state: State) -> State:
    effect("began")
    return {"paid": _in_a_thread(lambda: pay("node"))}


def _one(run: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("pay", run)
    builder.add_edge(START, "pay")
    builder.add_edge("pay", END)
    return builder


graph = _one(node).compile()
agraph = _one(anode).compile()
asks = _one(asking).compile()
confirms = _one(confirming).compile()
threads = _one(threaded).compile()


def _branch(side: str) -> Any:
    def run(state: State) -> State:
        effect(f"began {side}")
        return cast("State", {side: pay(side)})

    return run


_branching = StateGraph(State)
for _side in ("left", "right"):
    _branching.add_node(f"pay_{_side}", _branch(_side))
    _branching.add_edge(START, f"pay_{_side}")
    _branching.add_edge(f"pay_{_side}", END)
branches = _branching.compile()


def _outer(inner: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("inner", inner)
    builder.add_edge(START, "inner")
    builder.add_edge("inner", END)
    return builder.compile()


nested = _outer(_one(node).compile())


def _call_bare(state: State) -> State:
    """A subgraph that keeps no checkpoints begins anew: its effects are those of the task that calls it."""
    return cast("State", _one(node).compile(checkpointer=False).invoke({}, durability="async"))


bare = _outer(_call_bare)


@tool
def pay_order(order: str) -> str:
    """Pay an order."""
    effect(f"began {order}")
    return str(pay(order)["charge"])


def _calls(state: MessagesState) -> dict[str, list[AnyMessage]]:
    calls = [{"name": "pay_order", "args": {"order": order}, "id": f"call-{order}"} for order in ("one", "two")]
    return {"messages": [AIMessage("", tool_calls=calls)]}


_tooling = StateGraph(MessagesState)
_tooling.add_node("model", _calls)
_tooling.add_node("tools", ToolNode([pay_order]))
_tooling.add_edge(START, "model")
_tooling.add_edge("model", "tools")
_tooling.add_edge("tools", END)
tools = _tooling.compile()


class Round(TypedDict, total=False):
    round: int


def _again(state: Round) -> Round:
    pay("loop")
    return {"round": state.get("round", 0) + 1}


_looping = StateGraph(Round)
_looping.add_node("again", _again)
_looping.add_edge(START, "again")
_looping.add_conditional_edges("again", lambda state: END if state["round"] >= 3 else "again")
loops = _looping.compile()
