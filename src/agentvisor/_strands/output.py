"""What a run came to, as JSON: made of the state that is stored, so that it can be told again by another process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from agentvisor._strands.turns import State
from agentvisor.protocol.metadata import Json

MAX_MESSAGES = 1_000_000
"""Bytes of the messages in an output, the newest first: the whole conversation is in what is saved."""


def agent_outcome(state: Mapping[str, Json], stop_reason: str, structured: Json = None) -> State:
    """Of an agent, from its state at the end."""
    messages = _messages(state)
    outcome: State = {"text": text_of(messages[-1]) if messages else "", "stop_reason": stop_reason}
    return outcome if structured is None else {**outcome, "structured_output": structured}


def output_of(state: Mapping[str, Json] | None, outcome: State) -> State:
    """What is told of a run: its outcome, with an agent's conversation."""
    if state is None or "snapshot" not in state:
        return outcome
    messages = _messages(state)
    shown = _newest(messages)
    left_out: State = {"messages_left_out": len(messages) - len(shown)} if len(shown) < len(messages) else {}
    return {"messages": cast("list[Json]", shown), **outcome, **left_out}


def orchestrator_outcome(state: Mapping[str, Json], status: str) -> State:
    """Of a graph or swarm."""
    own = cast("State", state["state"])
    results = cast("Mapping[str, State]", own.get("node_results") or {})
    order = cast("list[str]", own.get("execution_order") or own.get("node_history") or [])
    texts = {node: _result_text(one) for node, one in results.items()}
    return {
        "text": texts.get(order[-1], "") if order else "",
        "status": status,
        "nodes": cast("Json", texts),
        "order": cast("list[Json]", order),
    }


def _messages(state: Mapping[str, Json]) -> list[State]:
    data = cast("State", cast("State", state["snapshot"])["data"])
    return cast("list[State]", data.get("messages") or [])


def text_of(message: Mapping[str, Json]) -> str:
    blocks = cast("list[State]", message.get("content") or [])
    return "\n".join(str(block["text"]) for block in blocks if "text" in block)


def _result_text(result: Mapping[str, Json]) -> str:
    said = cast("State", result.get("result") or {})
    match said.get("type"):
        case "agent_result":
            return text_of(cast("State", said.get("message") or {}))
        case "multiagent_result":
            inner = cast("Mapping[str, State]", said.get("results") or {})
            return "\n".join(f"{node}: {_result_text(one)}" for node, one in inner.items())
        case _:
            return str(said.get("message") or "")


def _newest(messages: list[State]) -> list[State]:
    left, kept = MAX_MESSAGES, list[State]()
    for message in reversed(messages):
        left -= len(json.dumps(message))
        if left < 0:
            break
        kept.append(message)
    return kept[::-1]
