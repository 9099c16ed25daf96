"""What is stored of an agent of Strands: its state, and whose it is: which agent's and run's, and how far that was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, cast

from agentvisor.core.errors import IncompatibleState
from agentvisor.protocol.metadata import Json

FRAMEWORK = "strands"
VERSION = 1
"""Of the envelope; a state that a newer one wrote is refused."""

ENDED = "strands"
"""Key of what the runs that came to an end left: what the next one begins with."""
UNDER_WAY = "strands.run"
"""Key of what the present run has come to so far: what a restarted attempt goes on with."""

Kind = Literal["agent", "graph", "swarm"]
Took = Literal["input", "answers", "nothing"]
"""What of its caller's a run has put into the state."""


class Phase(StrEnum):
    """How far the run was that stored it."""

    RUNNING = "running"
    FAILED = "failed"
    """The agent raised; the state is that before it did."""
    PAUSED = "paused"
    """It waits for answers."""
    FINISHED = "finished"
    LEFT = "left"
    """It never came to an end, and a later run goes on from there."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose state it is; a state of another owner is not loaded."""

    kind: Kind
    id: str
    nodes: tuple[str, ...] = ()
    """Of a graph or swarm, at all levels: `outer` and `outer/inner`, sorted."""

    def __str__(self) -> str:
        nodes = f" with nodes {', '.join(self.nodes)}" if self.nodes else ""
        return f"{self.kind} {self.id!r}{nodes}"


@dataclass(frozen=True, slots=True)
class Saved:
    """One stored state."""

    owner: Owner
    run_id: str
    phase: Phase
    took: Took
    origin: str
    """The run that took the input that is being worked on; another may go on with it."""
    covers: str = ""
    """The run whose save was under way when this one began: what ENDED holds has that in it, or goes before it."""
    state: dict[str, Json] | None = None
    """None: the run had put nothing into it yet."""
    results: dict[str, Json] = field(default_factory=dict[str, Json])
    """Of tools that were finished while others that were called with them were not: tool-use id to tool result."""
    outcome: dict[str, Json] = field(default_factory=dict[str, Json])
    """What the run came to: the fields of its output but the messages, or {"error"}."""

    def to_json(self) -> dict[str, Json]:
        """In a form that is shown as the thread's values: the conversation and what came of it on top."""
        messages, rest = _without_messages(self.state)
        envelope: dict[str, Json] = {
            "framework": FRAMEWORK,
            "version": VERSION,
            "kind": self.owner.kind,
            "id": self.owner.id,
            "nodes": list(self.owner.nodes),
            "run_id": self.run_id,
            "phase": self.phase.value,
            "took": self.took,
            "origin": self.origin,
            "covers": self.covers,
            "state": rest,
            "results": self.results,
        }
        shown: dict[str, Json] = {} if messages is None else {"messages": messages}
        return {**shown, **self.outcome, FRAMEWORK: envelope}


def _without_messages(state: dict[str, Json] | None) -> tuple[Json, dict[str, Json] | None]:
    """The messages of an agent's state, and the rest of it."""
    if state is None or "snapshot" not in state:
        return None, state
    snapshot = cast("dict[str, Json]", state["snapshot"])
    data = dict(cast("dict[str, Json]", snapshot["data"]))
    messages = data.pop("messages", None)
    return messages, {**state, "snapshot": {**snapshot, "data": data}}


def _with_messages(state: dict[str, Json] | None, messages: Json) -> dict[str, Json] | None:
    if state is None or "snapshot" not in state:
        return state
    snapshot = cast("dict[str, Json]", state["snapshot"])
    data = cast("dict[str, Json]", snapshot["data"])
    return {**state, "snapshot": {**snapshot, "data": {"messages": messages, **data}}}


HOW = (
    "it was left as it is: run it with the agent that it belongs to, or begin a new thread "
    "(a thread that need not be kept can be deleted)"
)


def incompatible(owner: Owner, why: str) -> IncompatibleState:
    """The one error of a state that does not fit the agent."""
    return IncompatibleState(f"what this thread holds cannot be loaded into the {owner}: {why}; {HOW}", kind=owner.kind)


def read(stored: Json, owner: Owner) -> Saved | None:
    """The envelope as it was saved; None where nothing was. `IncompatibleState` where it is not this agent's.

    Nodes are compared when a state is to be loaded (`check_nodes`): a finished graph may be changed.
    """
    if stored is None:
        return None
    envelope = stored.get(FRAMEWORK) if isinstance(stored, dict) else None
    if not isinstance(stored, dict) or not isinstance(envelope, dict) or envelope.get("framework") != FRAMEWORK:
        raise incompatible(owner, f"what is saved as {ENDED!r} is not a state of Strands")
    if envelope.get("version") != VERSION:
        raise incompatible(
            owner, f"its version is {envelope.get('version')!r}, and this AgentVisor reads version {VERSION}"
        )
    try:
        saved = _read(envelope, stored)
    except (KeyError, TypeError, ValueError) as error:
        raise incompatible(owner, f"it is not complete ({error!r})") from error
    if (saved.owner.kind, saved.owner.id) != (owner.kind, owner.id):
        raise incompatible(owner, f"it is the state of the {saved.owner}")
    return saved


def _read(envelope: Mapping[str, Json], stored: Mapping[str, Json]) -> Saved:
    state, results = envelope["state"], envelope["results"]
    if not (isinstance(state, dict | None) and isinstance(results, dict)):
        raise TypeError("state, results")
    nodes = tuple(str(node) for node in cast("list[Json]", envelope["nodes"]))
    return Saved(
        owner=Owner(cast("Kind", envelope["kind"]), str(envelope["id"]), nodes),
        run_id=str(envelope["run_id"]),
        phase=Phase(str(envelope["phase"])),
        took=cast("Took", envelope["took"]),
        origin=str(envelope["origin"]),
        covers=str(envelope["covers"]),
        state=_with_messages(state, stored.get("messages")),
        results=results,
        outcome={name: value for name, value in stored.items() if name not in ("messages", FRAMEWORK)},
    )


def check_nodes(saved: Saved, owner: Owner) -> None:
    """Before a state of a graph or swarm is loaded: one that names other nodes would silently run none of them."""
    if saved.owner.nodes == owner.nodes:
        return
    gone, new = sorted({*saved.owner.nodes} - {*owner.nodes}), sorted({*owner.nodes} - {*saved.owner.nodes})
    changes = [f"{what} {', '.join(nodes)}" for what, nodes in (("it lacks", new), ("it has besides", gone)) if nodes]
    raise incompatible(owner, f"its nodes are others: {'; '.join(changes)}")
