"""Where a run begins: anew, or with what was kept of the thread's latest execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agentvisor._crewai.progress import Progress
from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json


@dataclass(frozen=True)
class Order:
    """What the run's caller wants."""

    run_id: str
    kind: str
    """"crew" or "flow", as the agent is."""
    name: str
    inputs: Json
    """None: none were given."""
    answers: Mapping[str, Json]
    forgets: bool
    """Open questions were given up."""


def progress_for(order: Order, kept: Progress | None) -> Progress:
    """The execution that the run belongs to.

    A restarted attempt goes on with its run's. So does a run with answers, and one without an input where the latest
    execution has not ended (it failed, was cancelled, or asked). Every other run begins anew; what @persist keeps
    stays. Raises `InvalidInput` where the agent is not what the execution was of.
    """
    inputs = _checked(order)
    if kept is not None and not order.forgets and _goes_on(order, kept):
        if (kept.kind, kept.name) != (order.kind, order.name):
            raise InvalidInput(
                f"this thread holds an unfinished {kept.kind} {kept.name!r}, and the agent is the {order.kind} "
                f"{order.name!r} now: give the run an input to begin anew"
            )
        return replace(kept, run=order.run_id, answers={**kept.answers, **order.answers})
    if order.answers:
        raise InvalidInput("the run brings an answer (command.resume), and nothing of a crew or flow waits for one")
    persisted = kept.persisted if kept is not None else {}
    return Progress(order.run_id, order.run_id, order.kind, order.name, inputs, persisted=dict(persisted))


def _goes_on(order: Order, kept: Progress) -> bool:
    if kept.run == order.run_id:
        return True
    return not kept.ended and (bool(order.answers) or order.inputs is None)


def _checked(order: Order) -> Json:
    if order.inputs is not None and not isinstance(order.inputs, dict):
        raise InvalidInput(
            f"the input of a {order.kind} is an object: the values of its placeholders or of its state, not "
            f"{type(order.inputs).__name__}",
            field="input",
        )
    return order.inputs
