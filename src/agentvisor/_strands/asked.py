"""The questions that interrupted a run, in terms that are no framework's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote

from strands.interrupt import Interrupt
from strands.types.session import encode_bytes_values

from agentvisor._strands.tool_task import NAME, of_agent_tool
from agentvisor._strands.turns import State, interrupts_of
from agentvisor.protocol.metadata import Json

_TURNS = "sub_agent_interrupted_turns"
"""Where Strands keeps the turns of agents that are tools and keep nothing themselves (its _agent_as_tool.py)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question."""

    id: str
    value: Json
    """Of a question of ours (`agentvisor.interrupt`): what was asked; of Strands' own: {"name", "reason"}."""
    belongs_to: dict[str, Json]
    """The tool use that waits, and the node that it is in, where there is one."""


def asked(interrupts: Iterable[Interrupt], state: Mapping[str, Json]) -> list[Asked]:
    """`interrupts`: those of the result, without the answered ones that Strands keeps."""
    found = list[Asked]()
    for one in interrupts:
        reason = cast("Json", encode_bytes_values(one.reason))
        value: Json = reason if one.name.startswith(NAME) else {"name": one.name, "reason": reason}
        found.append(Asked(one.id, value, _place(one.id, state, "")))
    return found


def open_interrupts(state: Mapping[str, Json]) -> list[Interrupt]:
    """Of a stored state that waits: those without an answer."""
    kept = cast("Mapping[str, State]", interrupts_of(state).get("interrupts") or {})
    known = [Interrupt(id_, str(one.get("name")), one.get("reason"), one.get("response")) for id_, one in kept.items()]
    return [one for one in known if one.response is None]


def repeated(state: Mapping[str, Json]) -> list[str]:
    """Ids that two of the calls which wait have in common: Strands would give one answer to both."""
    nodes = cast("Mapping[str, State]", state.get("nodes") or {})
    tools = cast("Mapping[str, State]", state.get("tools") or {})
    waiting = interrupts_of(state)
    contexts = cast("Mapping[str, object]", waiting.get("context") or {})
    asked_by_nodes = Counter[str]()
    for context in contexts.values():
        if isinstance(context, dict):
            asked_by_nodes.update(cast("list[str]", cast("State", context).get("interrupt_ids") or []))
    pending = cast("State", waiting.get("pending_tool_execution") or {})
    message = cast("State", pending.get("assistant_message") or {})
    blocks = cast("list[State]", message.get("content") or [])
    calls = Counter(str(cast("State", one["toolUse"])["toolUseId"]) for one in blocks if "toolUse" in one)
    found = [id_ for id_, count in (*asked_by_nodes.items(), *calls.items()) if count > 1]
    return found + [id_ for part in (*nodes.values(), *tools.values()) for id_ in repeated(part)]


def _place(id_: str, state: Mapping[str, Json], node: str) -> dict[str, Json]:
    """What an interrupt is about; of an agent that is a tool, what its own tool is about."""
    if "nodes" in state:
        return _place_in_nodes(id_, state, node)
    place: dict[str, Json] = {"node": node} if node else {}
    waiting = interrupts_of(state)
    pending = cast("State", waiting.get("pending_tool_execution") or {})
    message = cast("State", pending.get("assistant_message") or {})
    for block in cast("list[State]", message.get("content") or []):
        use = cast("State", block.get("toolUse") or {})
        name = str(use.get("toolUseId"))
        above = of_agent_tool(name)
        if use and id_.startswith(above):
            # The rest is the id in the inner agent: its calls may have the very ids of this one's.
            inner = _place(id_.removeprefix(above), _tool_agent(use, state, waiting), node)
            return inner if "tool" in inner else _of_use(place, use)
        # An id has that of its tool use in the middle.
        if use and (f":{name}:" in id_ or f":{quote(name, safe='')}:" in id_):
            place = _of_use(place, use)
    return place


def _of_use(place: dict[str, Json], use: State) -> dict[str, Json]:
    return {**place, "tool": use["name"], "tool_call_id": use["toolUseId"], "input": use["input"]}


def _tool_agent(use: State, state: Mapping[str, Json], waiting: State) -> State:
    """The state of the agent that a call has called: its own, or the turn that Strands keeps for the calling one."""
    tools = cast("Mapping[str, State]", state.get("tools") or {})
    turns = cast("Mapping[str, State]", cast("State", waiting.get("context") or {}).get(_TURNS) or {})
    turn = turns.get(str(use["toolUseId"]))
    return {"snapshot": turn, "tools": {}} if turn is not None else tools.get(str(use["name"]), {})


def _place_in_nodes(id_: str, state: Mapping[str, Json], above: str) -> dict[str, Json]:
    parts = cast("Mapping[str, State]", state["nodes"])
    for node_id, context in cast("State", interrupts_of(state).get("context") or {}).items():
        if node_id not in parts or not isinstance(context, dict):
            continue
        # A swarm has one node that asks, and says no ids.
        if id_ in cast("list[str]", context.get("interrupt_ids", [id_])):
            return _place(id_, parts[node_id], f"{above}/{node_id}" if above else node_id)
    return {}
