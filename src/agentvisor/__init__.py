"""AgentVisor runs LLM agents so that anything may be killed at any time and nothing acknowledged is lost."""

__version__ = "0.1.0"
