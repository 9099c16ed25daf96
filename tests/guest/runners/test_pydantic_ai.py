"""What becomes of an answer to a call that an agent of Pydantic AI has deferred."""

from __future__ import annotations

import pytest
from pydantic_ai import ToolApproved, ToolDenied

from agentvisor.core.errors import InvalidInput
from agentvisor.guest.runners.pydantic_ai_questions import results_of
from agentvisor.protocol.metadata import Json

WAITING: dict[str, Json] = {"c": {"kind": "confirmation", "tool": "pay", "args": {"amount": 1}}}


@pytest.mark.parametrize(
    "answer, result",
    [
        (True, ToolApproved()),
        ({"approved": True, "args": {"amount": 2}}, ToolApproved(override_args={"amount": 2})),
        (False, ToolDenied()),
        ({"approved": False, "message": "no"}, ToolDenied("no")),
    ],
)
def test_an_approval_is_taken_as_it_is_meant(answer: Json, result: object) -> None:
    assert results_of(WAITING, {"c": answer}).approvals == {"c": result}


@pytest.mark.parametrize(
    "answer",
    [1, "yes", {"approved": "yes"}, {"approved": True, "args": 2}, {"approved": True, "override_args": {"amount": 2}},
     {"approved": False, "args": {"amount": 2}}],
)  # fmt: skip
def test_an_approval_that_says_what_is_not_understood_is_none(answer: Json) -> None:
    with pytest.raises(InvalidInput, match="is no approval"):
        results_of(WAITING, {"c": answer})
