"""A failed update is what its workflow has refused; or nobody has looked at it."""

from temporalio.exceptions import ApplicationError

from agentvisor.core.errors import Conflict, Internal
from agentvisor.host.workflow.refusals import refusal, was_dropped

DROPPED = ApplicationError(
    "Workflow Update is rejected because it wasn't processed by worker. Probably, Workflow Update is not supported by "
    "the worker.",
    type="UnprocessedUpdate",
)
"""As Temporal's server 1.32 said it of a worker that was ending."""


def test_a_refusal_is_the_error_that_the_workflow_raised() -> None:
    refused = refusal(ApplicationError("busy", {"run_id": "r"}, type=Conflict.code))
    assert (type(refused), refused.message, refused.details) == (Conflict, "busy", {"run_id": "r"})
    assert not was_dropped(ApplicationError("busy", type=Conflict.code))


def test_an_update_that_no_worker_looked_at_can_be_sent_again() -> None:
    assert was_dropped(DROPPED)


def test_what_nobody_foresaw_is_a_defect() -> None:
    assert isinstance(refusal(RuntimeError("x")), Internal)
    assert not was_dropped(None)
