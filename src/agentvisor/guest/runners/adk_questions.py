"""What a session waits for, and what answers it: calls of long-running tools that no user's response came for.

All of ADK's pauses are such calls: a tool that needs a confirmation, one that works elsewhere, a request for input, a
request for credentials.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import jsonschema
from google.adk.events.event import Event
from google.genai import types

from agentvisor.client.waiting import Waiting
from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json

CONFIRMATION = "adk_request_confirmation"
INPUT = "adk_request_input"
CREDENTIAL = "adk_request_credential"

KINDS = {CONFIRMATION: "confirmation", INPUT: "input", CREDENTIAL: "credential"}
"""By the name of the call; that of any other tool is a "result"."""

CONFIRMED: dict[str, Json] = {
    "anyOf": [
        {"type": "boolean"},
        {
            "type": "object",
            "properties": {"confirmed": {"type": "boolean"}, "payload": {}, "hint": {"type": "string"}},
            "required": ["confirmed"],
            "additionalProperties": False,
        },
    ]
}
"""Schema of the answer to a confirmation."""

ABANDONED = "The question was given up without an answer: the user went on with other input."


@dataclass(frozen=True)
class Question:
    """A call that waits."""

    call: types.FunctionCall
    event: Event

    @property
    def id(self) -> str:
        return str(self.call.id)

    @property
    def kind(self) -> str:
        return KINDS.get(str(self.call.name), "result")

    @property
    def schema(self) -> Json | None:
        """Of the answer, where it is known."""
        if self.kind == "confirmation":
            return CONFIRMED
        if self.kind == "input":
            return self._arguments.get("response_schema")
        return None

    def waiting(self) -> Waiting:
        """As everybody is told of it."""
        return Waiting(
            self.id, self._value(), self.kind, {"agent": self.event.author, **self._belongs_to()}, self.schema
        )

    def check(self, answer: Json) -> None:
        """Raise `InvalidInput` for an answer that ADK would choke on: nothing is stored then, and it still waits."""
        if self.schema is None:
            return
        try:
            jsonschema.validate(answer, cast("dict[str, Any]", self.schema))
        except jsonschema.ValidationError as error:
            raise InvalidInput(
                f"the answer to {self.id} does not fit: {error.message}; its schema is {json.dumps(self.schema)}",
                field="command.resume",
            ) from error

    def answered(self, answer: Json) -> types.Part:
        """The part of a user's message that answers it."""
        return self._part(self._response(answer))

    def abandoned(self) -> types.Part:
        """The part that closes it without an answer."""
        if self.kind == "confirmation":
            return self._part({"confirmed": False, "hint": ABANDONED})
        return self._part({"error": ABANDONED})

    def _response(self, answer: Json) -> dict[str, Json]:
        if self.kind == "confirmation":
            return answer if isinstance(answer, dict) else {"confirmed": answer}
        if self.kind == "input" and "interruptId" in self._arguments and isinstance(answer, str):
            # A workflow reads the text as JSON where it can: "7" would become a number.
            return {"result": json.dumps(answer)}
        return answer if isinstance(answer, dict) and self.kind != "input" else {"result": answer}

    def _part(self, response: dict[str, Json]) -> types.Part:
        return types.Part(
            function_response=types.FunctionResponse(id=self.id, name=self.call.name, response=dict(response))
        )

    @property
    def _arguments(self) -> Mapping[str, Json]:
        return cast("Mapping[str, Json]", self.call.args or {})

    @property
    def _original(self) -> Mapping[str, Json]:
        """The call that is to be confirmed."""
        return cast("Mapping[str, Json]", self._arguments.get("originalFunctionCall") or {})

    def _value(self) -> Json:
        given = self._arguments
        match self.kind:
            case "confirmation":
                asked = cast("Mapping[str, Json]", given.get("toolConfirmation") or {})
                tool, arguments = self._original.get("name"), self._original.get("args") or {}
                return {"hint": asked.get("hint"), "payload": asked.get("payload"), "tool": tool, "args": arguments}
            case "input":
                return {"message": given.get("message"), "payload": given.get("payload")}
            case "credential":
                # Never the configuration itself: it holds the client's secret.
                return {"message": given.get("message"), "auth_uri": _auth_uri(given)}
            case _:
                return {"tool": self.call.name, "args": dict(given)}

    def _belongs_to(self) -> dict[str, Json]:
        tool = self._original.get("name") if self.kind == "confirmation" else self.call.name
        call = self._original.get("id") if self.kind == "confirmation" else self.id
        path = self.event.node_info.path
        return {"tool": tool, "tool_call_id": call, **({"node": path} if path else {})}


def _auth_uri(given: Mapping[str, Json]) -> Json:
    found: Json = dict(given)
    for name in ("authConfig", "exchangedAuthCredential", "oauth2", "authUri"):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def open_questions(events: Sequence[Event]) -> list[Question]:
    """The calls that wait, oldest first. One inside of which another waits is answered by that one's answer."""
    waiting: dict[str, Question] = {}
    for event in events:
        if event.author == "user":
            answers = event.get_function_responses()
            for answer in answers:
                waiting.pop(str(answer.id), None)
            for outer in run_ids(event.branch) if answers else ():
                waiting.pop(outer, None)
        for call in event.get_function_calls():
            if call.id in (event.long_running_tool_ids or ()):
                waiting[str(call.id)] = Question(call, event)
    outer = {id_ for one in waiting.values() for id_ in run_ids(one.event.branch)}
    return [one for id_, one in waiting.items() if id_ not in outer]


def original_of(call: types.FunctionCall) -> str:
    """The id of the call that this one asks a person about; empty where it does not."""
    original = (call.args or {}).get("originalFunctionCall") if call.name in KINDS else None
    return str(cast("Mapping[str, Json]", original).get("id") or "") if isinstance(original, Mapping) else ""


def run_ids(branch: str | None) -> list[str]:
    """Of a branch `name@id.name@id`: the ids, which are those of calls where a tool has opened it."""
    return [step.partition("@")[2] for step in (branch or "").split(".") if "@" in step]


def by_branch(questions: Iterable[Question], parts: Mapping[str, types.Part]) -> list[Event]:
    """Their parts as messages of a user, one for each branch: an agent reads those of its own branch, and no others."""
    messages: dict[tuple[str | None, str | None], Event] = {}
    for one in questions:
        where = (one.event.branch, one.event.isolation_scope)
        if where not in messages:
            messages[where] = Event(
                author="user",
                invocation_id=one.event.invocation_id,
                branch=one.event.branch,
                isolation_scope=one.event.isolation_scope,
                content=types.Content(role="user", parts=[]),
            )
        cast("list[types.Part]", cast("types.Content", messages[where].content).parts).append(parts[one.id])
    return list(messages.values())
