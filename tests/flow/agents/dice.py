"""Agents that charge ten cards each and throw dice at every place around `agentvisor.once`: where they lose, they die.

The sign "dice" is "seed:chance", the sign "decides" who knows what became of an effect: "bank", or a person.
"""

import asyncio
import json
import os
import random
import signal
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

import agentvisor
from agents import signs
from agents.effects import effect
from agentvisor.client.socketpair import Channel
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

CARDS = 10
SOON = 0.25
"""Seconds after which the clock kills a process at the latest, where it does."""


def _dice() -> tuple[random.Random, float]:
    seed, _, chance = signs.read("dice").rpartition(":")
    lives = signs.sign("lives")
    with lives.open("a") as file:
        file.write(".")
    return random.Random(f"{seed}:{lives.stat().st_size}"), float(chance or 0)


_thrown: list[tuple[random.Random, float]] = []


def throw(place: str) -> None:
    """Die here, or not."""
    dice, chance = _thrown[0]
    if dice.random() < chance:
        effect(f"died {place}")
        os.kill(os.getpid(), signal.SIGKILL)


def _begin() -> None:
    """Once in each process: every tenth is killed by the clock, wherever it is then."""
    if _thrown:
        return
    _thrown.append(_dice())
    dice, chance = _thrown[0]
    if dice.random() < chance:
        after = dice.random() * SOON

        def clock() -> None:
            time.sleep(after)
            effect("died by the clock")
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=clock, daemon=True).start()


def _watch() -> None:
    plain = Channel.call

    def call(channel: Channel, request: StoreRequest) -> Future[StoreReply]:
        kind = request.effect.WhichOneof("kind") if request.WhichOneof("kind") == "effect" else None
        if kind == "intend":
            throw("before the intent")
        answer = plain(channel, request)
        if kind in ("intend", "result"):
            answer.add_done_callback(lambda _: throw("after the intent" if kind == "intend" else "after the result"))
        return answer

    Channel.call = Channel.submit = call  # type: ignore[method-assign]


_watch()


def _charge(card: str) -> dict[str, str]:
    effect(f"tried {card}")
    throw("before the effect")
    effect(f"charged {card}")
    throw("after the effect")
    return {"charged": card}


def _bank(card: str) -> Any:
    """It has books, which tell the truth."""
    effect(f"decided {card}")
    mine = os.environ["AGENTVISOR_THREAD_ID"]
    lines = (json.loads(line) for line in Path(os.environ["EFFECTS"]).read_text().splitlines() if mine in line)
    charged = any(line["what"] == f"charged {card}" for line in lines)
    return {"charged": card} if charged else agentvisor.NOT_DONE


def _options(card: str) -> dict[str, Any]:
    return {"reconcile": lambda: _bank(card)} if signs.read("decides") == "bank" else {}


def charge(card: str) -> Any:
    return agentvisor.once(card, lambda: _charge(card), **_options(card))


async def acharge(card: str) -> Any:
    async def later() -> Any:
        await asyncio.sleep(0)
        return _charge(card)

    return await agentvisor.once(card, later, **_options(card))


def plain(given: Any) -> Any:
    _begin()
    return [charge(f"card-{number}") for number in range(CARDS)]


async def plain_async(given: Any) -> Any:
    _begin()
    return [await acharge(f"card-{number}") for number in range(CARDS)]


class State(TypedDict, total=False):
    number: int


def _node(state: State) -> State:
    _begin()
    number = state.get("number", 0)
    charge(f"card-{number}")
    throw("after once")
    return {"number": number + 1}


async def _anode(state: State) -> State:
    _begin()
    number = state.get("number", 0)
    await acharge(f"card-{number}")
    throw("after once")
    return {"number": number + 1}


def _loop(node: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("charge", node)
    builder.add_edge(START, "charge")
    builder.add_conditional_edges("charge", lambda state: END if state["number"] >= CARDS else "charge")
    return builder.compile()


graph = _loop(_node)
agraph = _loop(_anode)
