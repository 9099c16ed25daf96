"""What a run's readers see of it while it goes on: a few facts of each step, as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from crewai import Task
from crewai.events import LLMStreamChunkEvent, crewai_event_bus

from agentvisor.protocol.metadata import Json

LONGEST = 4 * 1024 * 1024
"""Bytes of an event; of a longer one only the size is told."""


class Shown:
    """Sends events in the order in which things happen."""

    def __init__(self, send: Callable[[bytes], None], *, wanted: bool) -> None:
        self._send = send
        self._wanted = wanted

    def listen(self) -> None:
        """Send what models say, word by word: of those that stream."""
        if self._wanted:
            # CrewAI calls handlers of this event, and of no other, before it goes on.
            crewai_event_bus.on(LLMStreamChunkEvent)(self._chunk)

    def task(self, what: str, task: Task, **more: Json) -> None:
        """A step of a task."""
        agent = task.agent.role if task.agent else None
        self.say({"event": what, "task": task.name or task.description, "agent": agent, **more})

    def method(self, what: str, name: str) -> None:
        """A step of a flow."""
        self.say({"event": what, "method": name})

    def say(self, event: Mapping[str, Json]) -> None:
        """Send one event."""
        if not self._wanted:
            return
        data = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
        if len(data) > LONGEST:
            data = json.dumps({"event": event["event"], "__type__": "too_large", "size": len(data)}).encode()
        self._send(data)

    def _chunk(self, _source: Any, event: LLMStreamChunkEvent) -> None:
        self.say({"event": "llm_chunk", "text": event.chunk, "agent": event.agent_role, "task": event.task_name})
