"""For crews and flows of CrewAI: nothing is needed to run them; a flow's persistence may be named by hand."""

from __future__ import annotations

from agentvisor._crewai.persistence import ThreadPersistence

__all__ = ["ThreadPersistence"]
