"""Hooks for agents of Strands: one repairs their conversation, one tells their effects apart by tool use."""

from __future__ import annotations

from agentvisor._strands.repair import repair_messages
from agentvisor._strands.repair_hook import RepairHook
from agentvisor._strands.tool_scope import ToolScope

__all__ = ["RepairHook", "ToolScope", "repair_messages"]
