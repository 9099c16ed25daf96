"""Testing agents where they run: a real host and Temporal as a pytest fixture, scripted models, and faults on purpose.

The fixtures come with the package's pytest plugin (`agentvisor.testing.plugin`). Scripted models are in
`agentvisor.testing.langgraph` and `agentvisor.testing.strands`.
"""

from agentvisor.testing.faults import Fault, delay, kill, points, stop
from agentvisor.testing.script import Call, call

__all__ = ["Call", "Fault", "call", "delay", "kill", "points", "stop"]
