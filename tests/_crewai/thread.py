"""A thread on a host with CrewAI agents, as its user sees it."""

import json
from typing import Any

from tests._crewai.conftest import Desk
from tests.flow.deaths import VictimThread
from tests.support.waiting_sync import until

PATIENCE = 120.0
"""Seconds for what takes two: a flow imports a data base, and the machine may be busy."""

CREWS = {"crew", "Written", "beside", "managed", "conditional", "fails", "asks", "both_ask", "keyed"}
"""Of agents/crews.py; all other agents are flows."""


class DeskThread(VictimThread):
    """`start` begins runs by the agent's name."""

    def __init__(self, desk: Desk, thread_id: str = "") -> None:
        super().__init__(desk, desk.hosts[-1], thread_id)

    def ended(self, run_id: str, *, seconds: float = PATIENCE) -> dict[str, Any]:
        return super().ended(run_id, seconds=seconds)

    def until_it(self, what: str, times: int = 1) -> int:
        until(lambda: self.did()[what] >= times, seconds=PATIENCE)
        return super().until_it(what, times)

    def start(self, agent: str, given: object = None, **options: Any) -> str:
        """A run's id."""
        self.tell("agent", f"crews:{agent}" if agent in CREWS else f"flows:{agent}")
        body = {"assistant_id": "desk", "input": given, **options}
        return str(self.client.http.post(f"/threads/{self.id}/runs", json=body)["run_id"])

    def run_of(self, agent: str, given: object = None, **options: Any) -> dict[str, Any]:
        """A run, once it has ended."""
        return self.ended(self.start(agent, given, **options))

    def values(self) -> dict[str, Any]:
        """What the latest crew or flow gave: the thread's values are all that is kept of it."""
        return dict(super().values()["output"])

    def questions(self) -> list[dict[str, Any]]:
        """What waits for an answer."""
        return [dict(one) for one in self.client.threads.get_state(self.id)["interrupts"]]

    def answer(self, agent: str, answer: object) -> dict[str, Any]:
        """The run that brings an answer, once it has ended."""
        return self.run_of(agent, command={"resume": answer})

    def until_told(self, run_id: str, event: str, task: str) -> None:
        """Wait until the run's stream tells of a step of a task."""
        for part in self.client.runs.join_stream(self.id, run_id):
            if part.event == "custom" and (part.data["event"], part.data.get("task")) == (event, task):
                return
        raise AssertionError(f"{event} {task!r} was never told")

    def traceback(self) -> str:
        """Of the agent's error, in the host's log."""
        lines = [json.loads(line) for line in self.host.log.read_text().splitlines() if self.id in line]
        return next(line["traceback"] for line in lines if "traceback" in line)
