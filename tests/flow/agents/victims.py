"""Agents whose processes die, behind two names, so that a host that many tests share has few guests to start."""

import importlib
from typing import Any

from langchain_core.runnables import RunnableConfig


def make(config: RunnableConfig) -> Any:
    """The graph that the run's config names: {"configurable": {"graph": "module"}}, or "module:name"."""
    module, _, name = config["configurable"]["graph"].partition(":")
    return getattr(importlib.import_module(f"agents.{module}"), name or "graph")


def function(given: dict[str, Any]) -> Any:
    """The result of the function that the input names: {"call": "module:name", "with": argument}."""
    module, _, name = given["call"].partition(":")
    return getattr(importlib.import_module(f"agents.{module}"), name)(given.get("with"))


call = function
"""The same under a name that does not say what it is (conftest.py), so that its process has LangGraph at hand."""
