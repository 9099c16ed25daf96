"""Following a run that somebody else has started."""

from __future__ import annotations

from collections.abc import Iterator

from agentvisor.cli.facts import fields, has_ended, run_path, thread_path
from agentvisor.cli.http import Host, StreamedEvent
from agentvisor.cli.show import EventPrinter
from agentvisor.cli.show import as_json as on_one_line
from agentvisor.host.render_typed import Json

_SILENCE = 0.5
"""Seconds after which what was kept has come, and what comes is news."""


def tail(host: Host, thread: str, run: str, last: int | None, *, as_json: bool) -> dict[str, Json]:
    """Print the run's events, the `last` that have come before (None: all), and its end; the run as it ended."""
    place = run_path(thread, run)
    before = fields(host.get(place))
    printer = EventPrinter(quiet=as_json)
    printer.begin(thread)
    for event in _events(host, place, last, ended=has_ended(before)):
        if as_json:
            print(on_one_line({"event": event.event, "id": event.id, "data": event.data}), flush=True)
        else:
            printer.show(event)
    ended = fields(host.patiently(place))
    if as_json:
        print(on_one_line({"event": "end", "id": "", "data": ended}), flush=True)
    elif ended.get("status") != "success":
        printer.failed(ended)
    else:
        state = fields(host.patiently(f"{thread_path(thread)}/state"))
        printer.end(state, f"interrupts answer {thread}")
    return ended


def _events(host: Host, place: str, last: int | None, *, ended: bool) -> Iterator[StreamedEvent]:
    if last is None:
        yield from host.follow(place)
        return
    if ended:
        return
    kept = host.kept(place, _SILENCE)
    yield from kept[len(kept) - min(last, len(kept)) :]
    numbered = [one.id for one in kept if one.id]
    yield from host.follow(place, numbered[-1] if numbered else "")
