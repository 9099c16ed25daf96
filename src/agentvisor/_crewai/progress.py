"""What is kept of a crew or a flow while it runs: plain JSON, under one key of the thread."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import cast

from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json

KEY = "crewai"
"""The key of the saves (agentvisor.checkpoint)."""

FORMAT = 1


@dataclass
class Progress:
    """One execution of a crew or flow: it may take several runs, and each of them several attempts."""

    began: str
    """The run that began it."""
    run: str
    """The run that it is in now, or was in last."""
    kind: str
    """"crew" or "flow"."""
    name: str
    """The class of the flow, or the crew's name."""
    inputs: Json = None
    ended: bool = False
    output: Json = None
    """What it gave, once it has ended."""
    tasks: dict[str, Json] = field(default_factory=dict[str, Json])
    """Finished tasks, by place."""
    drafts: dict[str, Json] = field(default_factory=dict[str, Json])
    """Answers of agents that a person has yet to look at, by the task's place."""
    methods: dict[str, Json] = field(default_factory=dict[str, Json])
    """What a flow's finished methods returned, by call."""
    state: Json = None
    """The flow's, after the method that finished last."""
    outcomes: dict[str, str] = field(default_factory=dict[str, str])
    """What feedback was taken for, by question: so that no model is asked again."""
    waiting: dict[str, Json] = field(default_factory=dict[str, Json])
    """Questions that were asked, by id."""
    answers: dict[str, Json] = field(default_factory=dict[str, Json])
    """By the id of the question."""
    persisted: dict[str, Json] = field(default_factory=dict[str, Json])
    """What @persist keeps, by the id of the state: it outlives the execution."""

    def to_json(self) -> Json:
        """What is saved."""
        return {"framework": "crewai", "format": FORMAT, **asdict(self)}


def from_json(saved: object) -> Progress | None:
    """What was saved last; None where that is nothing. `InvalidInput` where another version saved it."""
    if saved is None:
        return None
    found = cast("dict[str, object]", saved) if isinstance(saved, dict) else {}
    known = {one.name for one in fields(Progress)}
    if found.get("framework") != "crewai" or found.get("format") != FORMAT or not known <= found.keys():
        raise InvalidInput(
            f"the save {KEY!r} of this thread is not what this version of AgentVisor keeps of a crew or flow (format "
            f"{found.get('format')!r}): start a new thread, or save under another key"
        )
    return Progress(**{name: found[name] for name in known})  # pyright: ignore[reportArgumentType] (as it was saved)
