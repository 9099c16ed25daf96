"""Tools that Strands would run in the background of the conversation are run in the foreground, like all others."""

from __future__ import annotations

import logging

from strands import Agent

logger = logging.getLogger(__name__)

_NONE = {"*": "never"}


def run_in_foreground(agent: Agent) -> None:
    """Let no tool of the agent run in the background, whatever its `background_tasks` say.

    Such a tool is in no snapshot: a process that goes on takes it for failed, or takes the turn for finished without
    it, and drops the question that it has asked, answer and all (Strands 1.62).
    """
    background = getattr(agent, "_background_tasks", None)
    if background is not None and background._policy != _NONE:  # noqa: SLF001 (as Strands makes it of {"never": ["*"]})
        logger.warning("The background_tasks of agent %s run in the foreground: only so do they survive", agent.name)
        background._policy = dict(_NONE)  # noqa: SLF001 (the same)
