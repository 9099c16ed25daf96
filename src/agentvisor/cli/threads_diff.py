"""`agentvisor threads diff`: what changed between two checkpoints of a thread."""

from __future__ import annotations

import difflib
import json as json_lines
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from agentvisor.cli import complete
from agentvisor.cli.facts import fields, objects, text
from agentvisor.cli.http import Host, Key, Url, connected
from agentvisor.cli.options import AsJson, InNamespace, ThreadId
from agentvisor.cli.show import cell, is_seen, print_json
from agentvisor.cli.states import newest, state_at, subgraphs
from agentvisor.core.errors import NotFound
from agentvisor.host.render_typed import Json

_AROUND = 2
"""Lines that are shown about a change."""

CheckpointId = Annotated[
    str | None,
    typer.Argument(
        metavar="CHECKPOINT", help="From this one; alone: from its parent to it.", autocompletion=complete.checkpoints
    ),
]
OtherCheckpointId = Annotated[
    str | None, typer.Argument(metavar="CHECKPOINT", help="To this one.", autocompletion=complete.checkpoints)
]


def diff(
    thread_id: ThreadId,
    checkpoint: CheckpointId = None,
    other: OtherCheckpointId = None,
    *,
    namespace: InNamespace = "",
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """Show what changed between two checkpoints: channels, what comes next, tasks. Without ids: between the last two.

    Subgraphs that ran meanwhile have checkpoints of their own: they are named, and --namespace shows theirs.

    Example: agentvisor threads diff order-7
    """
    with connected(url, key) as host:
        before, after = _two(host, thread_id, namespace, checkpoint, other)
        below = subgraphs(host, thread_id, before, after)
    found = Difference(before, after)
    if json:
        print_json({"thread_id": thread_id, **found.as_json(), "subgraphs": list[Json](below)})
        return
    printer = Console(highlight=False, soft_wrap=True)
    for line in (*found.lines(), *_below(thread_id, below)):
        printer.print(Text(line, style=_style(line) if is_seen() else ""))


def _two(
    host: Host, thread: str, namespace: str, first: str | None, second: str | None
) -> tuple[dict[str, Json], dict[str, Json]]:
    """The two states, the older one first where the command does not say; empty where there is nothing before."""
    if first is None:
        states = newest(host, thread, namespace, 2)
        if not states:
            raise NotFound(f"thread {thread} has no checkpoints")
        return states[1] if len(states) > 1 else {}, states[0]
    found = state_at(host, thread, namespace, first)
    if second is not None:
        return found, state_at(host, thread, namespace, second)
    parent = text(fields(found.get("parent_checkpoint")), "checkpoint_id")
    return state_at(host, thread, namespace, parent) if parent else {}, found


def _below(thread: str, subgraphs: list[dict[str, Json]]) -> Iterator[str]:
    for one in subgraphs:
        name = cell(text(one, "checkpoint_ns"))
        yield f"@@ subgraph {name} has checkpoints of its own, the latest of {text(one, 'created_at')[:19]} @@"
        yield f"  agentvisor threads diff {thread} --namespace '{name}'"


@dataclass(frozen=True, slots=True)
class Difference:
    """Between two states of a thread, as the host shows them."""

    before: dict[str, Json]
    after: dict[str, Json]

    def as_json(self) -> dict[str, Json]:
        """For programs."""
        old, new = self._values
        added: dict[str, Json] = {name: new[name] for name in new if name not in old}
        removed: dict[str, Json] = {name: old[name] for name in old if name not in new}
        changed: dict[str, Json] = {
            name: {"from": old[name], "to": new[name]} for name in new if name in old and old[name] != new[name]
        }
        return {
            "from": _named(self.before),
            "to": _named(self.after),
            "values": {"added": added, "removed": removed, "changed": changed},
            "next": {"from": self.before.get("next", []), "to": self.after.get("next", [])},
            "tasks": {"from": list[Json](_tasks(self.before)), "to": list[Json](_tasks(self.after))},
        }

    def lines(self) -> Iterator[str]:
        """For people: as `diff -u` shows files, channel by channel."""
        yield f"--- {_title(self.before)}"
        yield f"+++ {_title(self.after)}"
        old, new = self._values
        channels = [*new, *(name for name in old if name not in new)]
        shown = 0
        for name in channels:
            if name in old and name in new and old[name] == new[name]:
                continue
            shown += 1
            kind = "changed" if name in old and name in new else "added" if name in new else "removed"
            yield f"@@ {cell(name)} {kind} @@"
            yield from _changed(_pretty(old, name), _pretty(new, name))
        for what, ours, theirs in (
            ("next", _next(self.before), _next(self.after)),
            ("tasks", _tasks(self.before), _tasks(self.after)),
        ):
            if ours != theirs:
                shown += 1
                yield f"@@ {what} @@"
                yield from _changed(ours, theirs)
        if not shown:
            yield "nothing changed in this graph itself"

    @property
    def _values(self) -> tuple[dict[str, Json], dict[str, Json]]:
        """By channel; what is no table of channels, as of a plain agent, is one."""
        return tuple(  # pyright: ignore[reportReturnType] - of two
            values if isinstance(values, dict) else {} if values is None else {"values": values}
            for values in (self.before.get("values"), self.after.get("values"))
        )


def _pretty(values: Mapping[str, Json], name: str) -> list[str]:
    if name not in values:
        return []
    pretty = json_lines.dumps(values[name], ensure_ascii=False, indent=2)
    return [cell(line) if line == line.strip() else " " * _indent(line) + cell(line) for line in pretty.splitlines()]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _changed(old: list[str], new: list[str]) -> Iterator[str]:
    """Without what `diff -u` says of files and of line numbers."""
    # The first two lines name files; what is compared begins with a sign of its own, whatever it is.
    for line in islice(difflib.unified_diff(old, new, n=_AROUND, lineterm=""), 2, None):
        if not line.startswith("@@"):
            yield line


def _next(state: Mapping[str, Json]) -> list[str]:
    upcoming = state.get("next")
    return [cell(str(one)) for one in upcoming] if isinstance(upcoming, list) else []


def _tasks(state: Mapping[str, Json]) -> list[str]:
    return [cell(f"{one.get('name')} {standing(one)}") for one in objects(state.get("tasks"))]


def standing(task: Mapping[str, Json]) -> str:
    """Where a task stands, in a word."""
    if task.get("error"):
        return "failed"
    if task.get("result") is not None:
        return "done"
    return "asked" if task.get("interrupts") else "unfinished"


def _named(state: Mapping[str, Json]) -> Json:
    if not state:
        return None
    step = fields(state.get("metadata")).get("step")
    return {"checkpoint_id": _id(state), "created_at": state.get("created_at"), "step": step}


def _id(state: Mapping[str, Json]) -> str:
    return text(state, "checkpoint_id") or text(fields(state.get("checkpoint")), "checkpoint_id")


def _title(state: Mapping[str, Json]) -> str:
    if not state:
        return "(nothing)"
    return f"{_id(state)}  step {fields(state.get('metadata')).get('step')}  {text(state, 'created_at')[:19]}"


def _style(line: str) -> str:
    if line.startswith(("---", "+++")):
        return "bold"
    return {"@": "cyan", "+": "green", "-": "red"}.get(line[:1], "")
