"""Threads of agents that ask people: a framework of its own, a plain agent, a graph (agents/desk.py, deadlines.py)."""

from __future__ import annotations

from typing import Any

import httpx
from tests.flow.deaths import VictimThread


class Desk(VictimThread):
    """A thread of an agent that asks: `desk`, where a test does not say otherwise."""

    agent = "desk"

    def ask(self, *ids: str, takes_input: bool = False, **fields: Any) -> dict[str, Any]:
        given = {"ask": dict.fromkeys(ids, fields), "takes_input": takes_input}
        return self.ended(self.begin(input=given))

    def begin(self, **body: Any) -> str:
        response = self.post("runs", assistant_id=self.agent, **body)
        assert response.status_code == 200, response.text
        return str(response.json()["run_id"])

    def post(self, path: str, **body: Any) -> httpx.Response:
        return httpx.post(f"{self.host.url}/threads/{self.id}/{path}", json=body, timeout=30)

    def waits(self) -> list[str]:
        """What waits: all that show it agree."""
        listed = [one["id"] for one in self.records()]
        assert [one["id"] for one in self.client.threads.get_state(self.id)["interrupts"]] == listed
        return listed

    def waits_for_none(self) -> bool:
        return self.records() == [] and self.status() != "busy"

    def records(self) -> list[dict[str, Any]]:
        return list(httpx.get(f"{self.host.url}/threads/{self.id}/interrupts", timeout=30).json())

    def answered(self, **answers: Any) -> dict[str, Any]:
        response = self.post("interrupts", answers=answers)
        assert response.status_code == 200, response.text
        return self.ended(str(response.json()["run_id"]))

    def refused(self, path: str = "runs", **body: Any) -> dict[str, Any]:
        """What a refusal with 409 says; nothing has changed by it."""
        before = self.client.threads.get(self.id)
        if path == "runs":
            body["assistant_id"] = self.agent
        response = self.post(path, **body)
        assert response.status_code == 409, response.text
        assert self.client.threads.get(self.id) == before
        return dict(response.json())


def asking(desk: Desk, agent: str, **how: Any) -> list[dict[str, Any]]:
    """What waits when this agent has asked so."""
    desk.agent = agent
    desk.ask("a", **named_for_reports(how)) if agent == "desk" else desk.ended(desk.begin(input={"how": how}))
    return desk.records()


def named_for_reports(how: dict[str, Any]) -> dict[str, Any]:
    return {"deadline_seconds" if name == "deadline" else name: value for name, value in how.items()}
