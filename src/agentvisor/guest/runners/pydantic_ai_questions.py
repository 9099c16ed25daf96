"""The calls that an agent of Pydantic AI defers: what is asked about them, and what becomes of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied

from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json

CONFIRMATION = "confirmation"
RESULT = "result"


def asked(requests: DeferredToolRequests) -> dict[str, Json]:
    """By the ids of the calls."""
    kinds = [(CONFIRMATION, call) for call in requests.approvals] + [(RESULT, call) for call in requests.calls]
    return {
        call.tool_call_id: {"kind": kind, "tool": call.tool_name, "args": cast("Json", call.args_as_dict())}
        for kind, call in kinds
    }


def results_of(waiting: Mapping[str, Json], answers: Mapping[str, Json]) -> DeferredToolResults:
    """All answers as Pydantic AI takes them; `InvalidInput` for one that is none."""
    results = DeferredToolResults()
    for id_, one in waiting.items():
        if cast("Mapping[str, Json]", one)["kind"] == CONFIRMATION:
            results.approvals[id_] = _approval(id_, answers[id_])
        else:
            results.calls[id_] = answers[id_]
    return results


def _approval(id_: str, answer: Json) -> ToolApproved | ToolDenied:
    match answer:
        case bool():
            return ToolApproved() if answer else ToolDenied()
        case {"approved": True, **rest} if rest.keys() <= {"args"} and isinstance(rest.get("args"), dict | None):
            return ToolApproved(override_args=cast("dict[str, Any] | None", rest.get("args")))
        case {"approved": False, **rest} if rest.keys() <= {"message"}:
            return ToolDenied(str(rest["message"])) if rest.get("message") else ToolDenied()
        case _:
            # Also where it says more than is understood: what a person wants changed is not done unchanged.
            raise InvalidInput(
                f'the answer to {id_} is no approval: give true, false, {{"approved": true, "args"?: {{...}}}} or '
                '{"approved": false, "message"?: ...}, and nothing else',
                field="command.resume",
            )
