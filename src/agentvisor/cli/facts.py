"""What the host's answers hold, as the commands print it."""

from __future__ import annotations

from collections.abc import Mapping

from agentvisor.core.ids import run_id as checked_run
from agentvisor.core.ids import thread_id as checked_thread
from agentvisor.host.render_typed import Json


def objects(value: Json) -> list[dict[str, Json]]:
    """The objects of a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def fields(value: Json) -> dict[str, Json]:
    """An object; empty where it is none."""
    return value if isinstance(value, dict) else {}


def text(facts: Mapping[str, Json], name: str) -> str:
    """A field as a cell of a table."""
    value = facts.get(name)
    return "" if value is None else str(value)


def time(facts: Mapping[str, Json], name: str) -> str:
    """To the second; times of this API are UTC."""
    return text(facts, name)[:19].replace("T", " ")


def thread_path(thread_id: str) -> str:
    """Of a thread's routes. `InvalidInput` for what is no id: no route would answer, and say so."""
    return f"/threads/{checked_thread(thread_id)}"


def run_path(thread_id: str, run_id: str) -> str:
    return f"{thread_path(thread_id)}/runs/{checked_run(run_id)}"


def has_ended(run: Mapping[str, Json]) -> bool:
    return run.get("status") not in ("pending", "running")
