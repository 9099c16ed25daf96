"""Google ADK's sessions, kept in the state of the thread that an agent runs on."""

from __future__ import annotations

from agentvisor._adk.session_service import AgentVisorSessionService

__all__ = ["AgentVisorSessionService"]
