"""An agent that calls the function that its input names: {"call": "module:name", "with": arguments}."""

import importlib
from typing import Any


def call(given: dict[str, Any]) -> Any:
    module, _, name = given["call"].partition(":")
    return getattr(importlib.import_module(f"agents.{module}"), name)(**given.get("with", {}))
