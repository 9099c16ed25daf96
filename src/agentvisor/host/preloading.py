"""What a guest imports before its first run: the framework that its agent is written with."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from agentvisor.host.config_tree import AgentConfig

PRELOAD = {
    "langgraph": [
        "langgraph.graph",
        "langgraph.pregel",
        "langchain_core.messages",
        "agentvisor.langgraph",
        "agentvisor.guest.runners.langgraph",
    ],
    "strands": ["strands", "strands.multiagent", "agentvisor.strands", "agentvisor.guest.runners.strands"],
    "adk": [
        "google.adk.agents",
        "google.adk.models.google_llm",
        "google.adk.runners",
        "agentvisor.adk",
        "agentvisor.guest.runners.adk",
    ],
    "pydantic_ai": ["pydantic_ai", "agentvisor.guest.runners.pydantic_ai"],
    "openai_agents": ["agents", "agentvisor.guest.runners.openai_agents"],
    # lance_namespace: most of what each flow imports for its memory, and the part that starts no threads.
    "crewai": ["agentvisor.guest.runners.crewai_warm", "agentvisor.guest.runners.crewai", "lance_namespace"],
    "function": ["agentvisor.client.socketpair", "agentvisor.guest.runners.function"],
}
"""What a zygote imports for the agents of a framework; what is not installed is passed over."""

ON_MENTION = {
    "strands": "strands",
    "adk": "google.adk",
    "crewai": "crewai",
    "pydantic_ai": "pydantic_ai",
    # Its package is named `agents`, as are folders of many projects: imported for one of those, it would hide them.
    "openai_agents": "openai_agents",
}
"""Frameworks that cost too much to be imported for every agent whose framework is not told: what its file says then."""


def preloaded(agent: AgentConfig, base_dir: Path) -> list[str]:
    """The modules to import for an agent: of its framework, or of those that it may be written with."""
    frameworks = [agent.framework] if agent.framework else _frameworks(agent, base_dir)
    return [module for framework in frameworks for module in PRELOAD[framework]]


def _frameworks(agent: AgentConfig, base_dir: Path) -> list[str]:
    target = agent.entrypoint.rpartition(":")[0]
    said = ""
    with suppress(OSError, ValueError):
        said = (base_dir / target).read_text(errors="replace") if target.endswith(".py") else ""
    return [name for name in PRELOAD if ON_MENTION.get(name, "") in said]
