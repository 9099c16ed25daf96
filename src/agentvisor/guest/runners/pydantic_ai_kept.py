"""What is kept of a conversation with an agent of Pydantic AI: plain JSON, under one key of the thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import cast

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from agentvisor.client.waiting import Waiting
from agentvisor.core.errors import IncompatibleState
from agentvisor.guest import kept_save
from agentvisor.protocol.metadata import Json

KEY = "pydantic_ai"
FORMAT = 1


@dataclass(frozen=True)
class Kept:
    """After a step of a run."""

    run: str = ""
    """The run that stored it."""
    messages: list[Json] = field(default_factory=list[Json])
    """Pydantic AI's own form of them."""
    ended: bool = False
    output: Json = None
    """What it gave, once it has ended."""
    waiting: dict[str, Json] = field(default_factory=dict[str, Json])
    """The calls that wait, by their ids: {"kind", "tool", "args"}."""
    answers: dict[str, Json] = field(default_factory=dict[str, Json])
    """What came of them so far: Pydantic AI is given all at once."""

    @property
    def unanswered(self) -> list[str]:
        return [one for one in self.waiting if one not in self.answers]

    def questions(self) -> list[Waiting]:
        """Those without an answer, as everybody is told of them."""
        calls = {one: cast("Mapping[str, Json]", self.waiting[one]) for one in self.unanswered}
        return [
            Waiting(
                id_,
                {"tool": one["tool"], "args": one["args"]},
                str(one["kind"]),
                {"tool": one["tool"], "tool_call_id": id_},
            )
            for id_, one in calls.items()
        ]

    def conversation(self) -> list[ModelMessage]:
        """`IncompatibleState` where this version of Pydantic AI cannot read it; it stays as it is."""
        try:
            return ModelMessagesTypeAdapter.validate_python(self.messages)
        except ValueError as error:
            raise IncompatibleState(
                f"this version of Pydantic AI does not read the thread's conversation ({error}): start a new thread"
            ) from error

    def to_json(self) -> Json:
        return {"framework": KEY, "format": FORMAT, **asdict(self)}


def kept_from(saved: object) -> Kept:
    """What was saved last; an empty conversation where that is nothing."""
    return kept_save.kept_from(Kept, KEY, FORMAT, saved)
