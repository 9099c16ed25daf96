"""What the workflows beside threads say of themselves in Temporal's UI: shelves, and firings of crons."""

from __future__ import annotations

from agentvisor.core.shelf import Shelf
from agentvisor.host.workflow.markdown import code, codes, number, size
from agentvisor.protocol.v1 import run_pb2

_HELD = {"items": "Items of the store", "news": "Which namespaces of the store are new"}


def shelf_details(shelf: Shelf) -> str:
    """What is kept there and how much of it; no keys and no values."""
    name, taken, limit = shelf.name, shelf.stored_bytes, shelf.settings.max_bytes
    lines = [
        f"**{_HELD.get(name.kind, code(name.kind))}** · namespace {codes(list(name.namespace), 8) or '(the root)'}",
        "",
        f"- {number(len(shelf.items), 'item')}, {size(taken)} of at most {size(limit)} (`storage.max_state`)",
        f"- changed {number(shelf.revision, 'time')}",
    ]
    if name.owner:
        lines.append(f"- owner {code(name.owner)}")
    mortal = sum(1 for item in shelf.items.values() if item.expires_at_ms)
    if mortal:
        lines.append(f"- {number(mortal, 'item')} with a time to live")
    lines += [
        "",
        "Delete items with AgentVisor, not on this page: a workflow that is terminated takes all of them with it.",
    ]
    return "\n".join(lines)


def cron_details(told: run_pb2.FireCron) -> str:
    """Of which cron it is a firing, and which run comes of it."""
    lines = [
        f"**One firing of a cron** · {code(told.cron_id)}" + (f" · owner {code(told.owner)}" if told.owner else ""),
        "",
        f"- due by {code(told.clock, 160)} (schedule, timezone, end, enabled)",
        f"- starts the run {code(told.run_id)}, once, however often that is tried",
    ]
    return "\n".join(lines)
