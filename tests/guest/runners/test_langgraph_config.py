"""What of a caller's config the graph is run with."""

from __future__ import annotations

import json

from agentvisor.guest.runners.langgraph_config import config_of
from agentvisor.protocol.v1.guest_pb2 import AgentTask
from agentvisor.protocol.v1.run_pb2 import RunSpec


def test_limits_of_the_caller_are_the_graphs() -> None:
    asked = {"recursion_limit": 7, "max_concurrency": 2}
    config = config_of(AgentTask(thread_id="t", run_id="r", spec=RunSpec(config=json.dumps(asked).encode())))
    assert {name: config.get(name) for name in asked} == asked
