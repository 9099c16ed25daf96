"""A thread on a host with CrewAI agents, as its user sees it."""

from typing import Any

from tests._crewai.conftest import Desk
from tests.flow.deaths import VictimThread


class DeskThread(VictimThread):
    """`start` begins runs by the agent's name."""

    def __init__(self, desk: Desk, thread_id: str = "") -> None:
        super().__init__(desk, desk.hosts[-1], thread_id)

    def start(self, agent: str, given: dict[str, Any] | None = None, **options: Any) -> str:
        """A run's id."""
        return str(self.client.runs.create(self.id, agent, input=given, **options)["run_id"])

    def run_of(self, agent: str, given: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """A run, once it has ended."""
        return self.ended(self.start(agent, given, **options))

    def questions(self) -> list[dict[str, Any]]:
        """What waits for an answer."""
        return [dict(one) for one in self.client.threads.get_state(self.id)["interrupts"]]

    def answer(self, agent: str, answer: object) -> dict[str, Any]:
        """The run that brings an answer, once it has ended."""
        return self.run_of(agent, command={"resume": answer})
