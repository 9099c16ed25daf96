"""The desk under test: the same agent, with a model that says what a script says."""

from desk import make

from agentvisor.testing import call
from agentvisor.testing.langgraph import ScriptedChatModel

graph = make(
    ScriptedChatModel(
        [
            ["Let me see.", call("look_up", what="order"), call("look_up", what="customer")],
            call("pay", order="7"),
            "You have your money back.",
        ]
    )
)
