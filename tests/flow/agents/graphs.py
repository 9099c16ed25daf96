"""Makes the graph that a run's config names: {"configurable": {"graph": "module:name"}}."""

import importlib
from typing import Any


def make(config: dict[str, Any]) -> Any:
    module, _, name = config["configurable"]["graph"].partition(":")
    made = getattr(importlib.import_module(f"agents.{module}"), name)
    return made() if callable(made) and not hasattr(made, "invoke") else made
