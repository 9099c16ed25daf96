"""What is kept of a conversation with an agent of the OpenAI Agents SDK: plain JSON, under one key of the thread."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import cast

from agentvisor.client.waiting import Waiting
from agentvisor.guest import kept_save, plain_json
from agentvisor.protocol.metadata import Json

KEY = "openai_agents"
FORMAT = 1

LOST = "The call was given up before it had a result: nobody knows whether it took effect."
"""What the model is told of a call that a run has left behind."""

_DONE_BY_THE_PROVIDER = ("code_interpreter_call", "file_search_call", "image_generation_call", "mcp_call",
                         "web_search_call")  # fmt: skip


@dataclass(frozen=True)
class Kept:
    """After a step of a run."""

    run: str = ""
    """The run that stored it."""
    agent: str = ""
    """The name of the agent that has the conversation, after a handoff the one that it went to."""
    items: list[Json] = field(default_factory=list[Json])
    """The conversation, in the SDK's own form, as the model was asked with it last; once it has ended, all of it."""
    response: list[Json] | None = None
    """What the model replied to that, while the calls in it are not all done."""
    results: dict[str, Json] = field(default_factory=dict[str, Json])
    """Of its calls that are done, by their ids."""
    state: Json = None
    """The SDK's RunState, where calls of the reply wait for approval, or had it and are under way."""
    waiting: dict[str, Json] = field(default_factory=dict[str, Json])
    """What waits for an answer, by id: {"kind", "value", "belongs_to"}."""
    answers: dict[str, Json] = field(default_factory=dict[str, Json])
    """Of this reply's calls: approvals, and what their tools have asked."""
    ended: bool = False
    output: Json = None
    """What the agent gave, once it has ended."""

    @property
    def unanswered(self) -> list[str]:
        return [one for one in self.waiting if one not in self.answers]

    def waiting_but_of(self, call: str) -> dict[str, Json]:
        """What waits, without what a call of the reply waited for."""
        about = {one: cast("Mapping[str, Mapping[str, Json]]", told) for one, told in self.waiting.items()}
        return {one: self.waiting[one] for one, told in about.items() if told["belongs_to"]["tool_call_id"] != call}

    def questions(self, ids: Iterable[str] | None = None) -> list[Waiting]:
        """These, else those without an answer, as everybody is told of them."""
        waiting = {one: cast("Mapping[str, Json]", self.waiting[one]) for one in (ids or self.unanswered)}
        return [
            Waiting(id_, one["value"], str(one["kind"]), cast("Mapping[str, Json]", one["belongs_to"]))
            for id_, one in waiting.items()
        ]

    def closed(self) -> list[Json]:
        """The conversation as one goes on that leaves open calls behind: each has a result, if only that it has none.

        A reply with other calls that are made here is left out: their results have forms of their own.
        """
        reply = [cast("Mapping[str, Json]", one) for one in self.response or []]
        kinds = {str(one.get("type")) for one in reply}
        if any(kind.endswith("_call") for kind in kinds - {"function_call", *_DONE_BY_THE_PROVIDER}):
            return self.items
        calls = [str(one["call_id"]) for one in reply if one.get("type") == "function_call"]
        outputs: list[Json] = [
            {"type": "function_call_output", "call_id": one, "output": _text_of(self.results.get(one, LOST))}
            for one in calls
        ]
        return [*self.items, *(self.response or []), *outputs]

    def to_json(self) -> Json:
        return {"framework": KEY, "format": FORMAT, **asdict(self)}


def kept_from(saved: object) -> Kept:
    """What was saved last; an empty conversation where that is nothing."""
    return kept_save.kept_from(Kept, KEY, FORMAT, saved)


def stored(items: object, what: str) -> list[Json]:
    """Items as they are kept; `InvalidInput` names the place of what JSON does not have."""
    return cast("list[Json]", json.loads(plain_json.encode(items, what)))


def result_of(given: object) -> Json:
    """What a tool returned, as the model is told of it: what is not the same after JSON goes to it as text."""
    try:
        again: Json = json.loads(json.dumps(given, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return _shown(given)
    return again if again == given else _shown(given)


def field_of(raw: object, name: str) -> object:
    """Of an item in either form that the SDK has of it: an object, or a mapping."""
    return cast("Mapping[str, object]", raw).get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)


def _shown(given: object) -> Json:
    dump = getattr(given, "model_dump", None)
    # The SDK takes an image, a file and a text for what they are by `type`, in an object or in its form as JSON.
    if callable(dump) and str(getattr(given, "type", "")) in ("text", "image", "file"):
        return cast("Json", dump(mode="json", exclude_none=True))
    return str(given)


def _text_of(result: Json) -> str:
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
