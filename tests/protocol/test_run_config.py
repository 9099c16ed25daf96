"""A run that answers goes to what waits now, wherever the run that asked began."""

import json

import pytest

from agentvisor.core.interrupts import Interrupt, Terms
from agentvisor.core.runs import Run, RunStatus
from agentvisor.protocol.default_answers import run_with_defaults
from agentvisor.protocol.run_config import without_checkpoint
from agentvisor.protocol.threads import spec_from_message
from agentvisor.protocol.v1 import run_pb2


@pytest.mark.parametrize("same", [b"", b"null", b'{"tags": ["a"]}', b'{"configurable": {"user": "ann"}}'])
def test_a_config_without_a_checkpoint_is_left_as_it_is(same: bytes) -> None:
    assert without_checkpoint(same) == same


def test_a_default_answer_leaves_out_the_checkpoint_that_its_asker_began_from() -> None:
    config = {"tags": ["a"], "configurable": {"user": "ann", "checkpoint_id": "1", "checkpoint_ns": ""}}
    told = run_pb2.RunSpec(run_id="r1", agent="a", input=b"1", checkpoint_id="1", config=json.dumps(config).encode())
    told.kind, told.multitask_strategy = run_pb2.RUN_KIND_AGENT, run_pb2.MULTITASK_STRATEGY_ENQUEUE
    asked = Run(spec_from_message(told), RunStatus.SUCCESS, 1, 2)
    late = Interrupt("i1", "question", b'"?"', terms=Terms(deadline_ms=5, default_answer=b'"no"'))
    made = run_with_defaults(asked, [late], "r2", of_graph=["i1"])
    assert json.loads(made.config) == {"tags": ["a"], "configurable": {"user": "ann"}}
    assert (made.run_id, made.checkpoint_id, made.input) == ("r2", "", b"")
    assert json.loads(made.command) == {"resume": {"i1": "no"}}
