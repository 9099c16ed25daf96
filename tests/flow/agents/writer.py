"""Writes checkpoints one after the other, and notes each in a file once it is acknowledged."""

import os
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint

from agentvisor.langgraph import AgentVisorCheckpointer


def write(count: int, noted_in: str) -> int:
    saver = AgentVisorCheckpointer()
    config: Any = {"configurable": {}}
    values: list[str] = []
    with Path(noted_in).open("a", buffering=1) as acknowledged:
        for number in range(1, count + 1):
            values = [*values, f"value {number} of {os.getpid()}"]
            checkpoint = {**empty_checkpoint(), "channel_values": {"values": values}}
            checkpoint["channel_versions"] = {"values": f"{number:032}"}
            new: Any = checkpoint["channel_versions"]
            config = saver.put(config, checkpoint, {"step": number}, new)  # type: ignore[arg-type,typeddict-unknown-key]
            saver.put_writes(config, [("values", f"pending {number}")], f"task-{number}")
            acknowledged.write(f"{number} {config['configurable']['checkpoint_id']}\n")
    return count
