"""The run that gives the answers which nobody gave before their deadlines: as the one that asked, with a command."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from agentvisor.core.interrupts import Interrupt
from agentvisor.core.runs import Run
from agentvisor.protocol.run_config import without_checkpoint
from agentvisor.protocol.v1 import run_pb2

ANSWERED_BY = "answered_by"
"""Key of the run's metadata, which says "deadline"."""


def run_with_defaults(
    asked: Run, overdue: Sequence[Interrupt], run_id: str, *, of_graph: Collection[str]
) -> run_pb2.RunSpec:
    """Its specification; `of_graph`: which of the interrupts a graph's checkpoint holds."""
    spec = run_pb2.RunSpec.FromString(asked.spec.body)
    for name in ("input", "checkpoint_id", "abandons", "host_queue", "after_ms", "multitask_strategy"):
        spec.ClearField(name)  # pyright: ignore[reportArgumentType] - the stub wants a literal
    spec.config = without_checkpoint(spec.config)
    spec.run_id = run_id
    given = (json.dumps(one.id).encode() + b": " + (one.terms.default_answer or b"null") for one in overdue)
    spec.command = b'{"resume": {' + b", ".join(given) + b"}}"
    spec.answers[:] = [one.id for one in overdue]
    spec.answers_graph = any(one.id in of_graph for one in overdue)
    spec.metadata.update({ANSWERED_BY: "deadline"})
    return spec
