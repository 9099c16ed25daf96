"""The questions that interrupted a run, in terms that are no framework's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote

from strands.interrupt import Interrupt
from strands.types.session import encode_bytes_values

from agentvisor._strands.tool_task import NAME
from agentvisor._strands.turns import State, interrupts_of
from agentvisor.protocol.metadata import Json


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
    places = list(_places(state, {}))
    found = list[Asked]()
    for one in interrupts:
        reason = cast("Json", encode_bytes_values(one.reason))
        value: Json = reason if one.name.startswith(NAME) else {"name": one.name, "reason": reason}
        found.append(Asked(one.id, value, _place_of(one.id, places)))
    return found


def open_interrupts(state: Mapping[str, Json]) -> list[Interrupt]:
    """Of a stored state that waits: those without an answer."""
    kept = cast("Mapping[str, State]", interrupts_of(state).get("interrupts") or {})
    known = [Interrupt(id_, str(one.get("name")), one.get("reason"), one.get("response")) for id_, one in kept.items()]
    return [one for one in known if one.response is None]


def _place_of(id_: str, places: list[tuple[str, dict[str, Json]]]) -> dict[str, Json]:
    """An id names its tool use in the middle, and that of an agent's tool its own tool's behind the agent's."""
    found = [place for use, place in places if f":{use}:" in id_ or f":{quote(use, safe='')}:" in id_]
    return found[-1] if found else {}


def _places(state: Mapping[str, Json], above: Mapping[str, Json]) -> list[tuple[str, dict[str, Json]]]:
    """Every pending tool use, the outermost first."""
    interrupts = interrupts_of(state)
    pending = cast("State", interrupts.get("pending_tool_execution") or {})
    message = cast("State", pending.get("assistant_message") or {})
    uses = [cast("State", one["toolUse"]) for one in cast("list[State]", message.get("content") or []) if "toolUse" in one]
    found = [
        (str(use["toolUseId"]), {**above, "tool": use["name"], "tool_use_id": use["toolUseId"], "input": use["input"]})
        for use in uses
    ]
    for part in cast("Mapping[str, State]", state.get("tools") or {}).values():
        found += _places(part, above)
    for node_id, part in cast("Mapping[str, State]", state.get("nodes") or {}).items():
        found += _places(part, {"node": f"{above['node']}/{node_id}" if "node" in above else node_id})
    return found
