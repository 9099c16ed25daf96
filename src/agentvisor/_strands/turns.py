"""What a stored state says of the turn it was stored in: which questions wait, which tools are done, what is left.

Works on the state as it is stored (JSON), before anything is loaded: `{"snapshot", "tools"}` of an agent, with the same
of the agents that are its tools; `{"state", "nodes"}` of a graph or swarm, with the same of its nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast
from urllib.parse import quote

from strands.types.content import Message
from strands.types.tools import ToolResult

from agentvisor._strands.repair import repair_messages
from agentvisor.protocol.metadata import Json

State = dict[str, Json]

ABANDONED = (
    "Abandoned: a person was asked about this call and has not answered; the caller went on with something else. "
    "The call was not made."
)


def interrupts_of(state: Mapping[str, Json]) -> State:
    """Strands' interrupt state."""
    if "snapshot" in state:
        return _of(_data(state), "interrupt_state")
    return _of(_of(_of(state, "state"), "_internal_state"), "interrupt_state")


def waits(state: Mapping[str, Json]) -> bool:
    """Whether it is the state of a turn that questions have interrupted."""
    return bool(interrupts_of(state).get("activated"))


def known_answers(state: Mapping[str, Json], answers: Mapping[str, Json]) -> list[Json]:
    """Strands' input that gives those of the answers that the state has questions for."""
    asked = _of(interrupts_of(state), "interrupts")
    return [{"interruptResponse": {"interruptId": id_, "response": answers[id_]}} for id_ in answers if id_ in asked]


def last_message(state: Mapping[str, Json]) -> State:
    """Of an agent; empty where it has none."""
    messages = cast("list[State]", _data(state).get("messages") or [])
    return messages[-1] if messages else {}


def calls_tools(message: Mapping[str, Json]) -> bool:
    return any("toolUse" in block for block in cast("list[State]", message.get("content") or []))


def is_last_word(message: Mapping[str, Json]) -> bool:
    """Whether the turn that it is in was over with it."""
    return message.get("role") == "assistant" and not calls_tools(message)


def with_results(state: State, results: Mapping[str, Json]) -> State:
    """The state of an agent in which these tools need not run again: as Strands keeps them while a person is asked."""
    if not results:
        return state
    data = dict(_data(state))
    before = _of(data, "interrupt_state")
    if before.get("activated") and before.get("pending_tool_execution"):
        pending = dict(_of(before, "pending_tool_execution"))
        done = cast("list[State]", pending["completed_tool_results"])
        ids = {str(one["toolUseId"]) for one in done}
        pending["completed_tool_results"] = [*done, *(one for id_, one in results.items() if id_ not in ids)]
        data["interrupt_state"] = {**before, "pending_tool_execution": pending}
    else:
        data["interrupt_state"] = {
            "interrupts": {},
            "context": {},
            "activated": True,
            "pending_tool_execution": {
                "assistant_message": last_message(state),
                "completed_tool_results": list(results.values()),
            },
        }
    return _with_data(state, data)


def closed(state: State, results: Mapping[str, Json] | None = None) -> State:
    """The state of an agent in which no turn is open: every tool use has a result, which says so where it is not known.

    What waited for a person was not done; of what else has no result nobody knows whether it was.
    """
    data = dict(_data(state))
    interrupts = _of(data, "interrupt_state")
    known = dict(results or {})
    if interrupts.get("activated"):
        pending = _of(interrupts, "pending_tool_execution")
        for one in cast("list[State]", pending.get("completed_tool_results") or []):
            known[cast("str", one["toolUseId"])] = one
        for id_ in _unanswered(interrupts, _of(pending, "assistant_message")):
            known.setdefault(id_, {"toolUseId": id_, "status": "error", "content": [{"text": ABANDONED}]})
        data["interrupt_state"] = {"interrupts": {}, "context": {}, "activated": False}
    messages = cast("list[Message]", data.get("messages") or [])
    fixed = repair_messages(messages, results=cast("Mapping[str, ToolResult]", known))
    data["messages"] = cast("list[Json]", fixed)
    tools: Json = {name: closed(cast("State", part)) for name, part in _of(state, "tools").items()}
    return {**_with_data(state, data), "tools": tools}


def _unanswered(interrupts: Mapping[str, Json], message: Mapping[str, Json]) -> list[str]:
    """Tool uses of which a question has no answer. Which they are is in the middle of its id."""
    open_ = [id_ for id_, one in _of(interrupts, "interrupts").items() if cast("State", one).get("response") is None]
    uses = [cast("State", block["toolUse"]) for block in _blocks(message) if "toolUse" in block]
    ids = [cast("str", use["toolUseId"]) for use in uses]
    return [id_ for id_ in ids if any(f":{name}:" in one for one in open_ for name in (id_, quote(id_, safe="")))]


def _blocks(message: Mapping[str, Json]) -> list[State]:
    return cast("list[State]", message.get("content") or [])


def _data(state: Mapping[str, Json]) -> State:
    return _of(_of(state, "snapshot"), "data")


def _with_data(state: State, data: State) -> State:
    return {**state, "snapshot": {**_of(state, "snapshot"), "data": data}}


def _of(value: Mapping[str, Json], name: str) -> State:
    found = value.get(name)
    return found if isinstance(found, dict) else {}
