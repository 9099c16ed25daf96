"""A caller's config, as it goes on to another run."""

from __future__ import annotations

import json
from typing import cast


def without_checkpoint(config: bytes) -> bytes:
    """The config but for the checkpoint that its run began from: an answer goes to what waits now. JSON, or nothing."""
    told: object = json.loads(config) if config else None
    configurable = cast("dict[str, object]", told).get("configurable") if isinstance(told, dict) else None
    if not isinstance(configurable, dict):
        return config
    named = cast("dict[str, object]", configurable)
    kept = {name: value for name, value in named.items() if not name.startswith("checkpoint_")}
    return config if kept == named else json.dumps({**cast("dict[str, object]", told), "configurable": kept}).encode()
