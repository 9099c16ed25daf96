"""`agentvisor interrupts` and `agentvisor answer`: what waits for people, and what they say."""

from __future__ import annotations

import sys
from typing import Annotated
from urllib.parse import quote

import typer

from agentvisor.cli.exits import RUN_FAILED
from agentvisor.cli.http import Host, Key, Url, connected
from agentvisor.cli.run import json_of
from agentvisor.cli.show import as_json, print_json, print_table
from agentvisor.core.errors import Conflict
from agentvisor.host.render_typed import Json


def interrupts(
    *,
    thread: Annotated[str | None, typer.Option("--thread", help="Of this thread only, exactly.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Of what this agent asks only.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Of this kind only.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="The first so many.")] = 100,
    url: Url = None,
    key: Key = None,
    json: Annotated[bool, typer.Option("--json", help="Print the host's answer.")] = False,
) -> None:
    """List what waits for an answer, over all threads."""
    with connected(url, key) as host:
        found = _of(host, thread) if thread is not None else _over_all(host, limit, agent, kind)
    if thread is not None:
        found = [one for one in found if agent in (None, one.get("agent")) and kind in (None, one.get("kind"))]
    found = found[:limit]
    if json:
        print_json(list[Json](found))
        return
    names = ("thread_id", "id", "agent", "kind", "created_at", "deadline")
    rows = [(*(_text(one.get(name)) for name in names), as_json(one.get("value"))[:120]) for one in found]
    print_table(("thread", "interrupt", "agent", "kind", "asked", "deadline", "waits for"), rows)


def answer(
    thread_id: Annotated[str, typer.Argument(help="Id of the thread.")],
    answer: Annotated[str, typer.Argument(help="The answer, as JSON; @file reads a file, - reads standard input.")],
    *,
    interrupt: Annotated[
        str | None,
        typer.Option("--id", help="Id of the interrupt. Without it: of the only one, or the answer is {id: answer}."),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", help="Who goes on, where no run of the thread tells: on a copy. Default: who asked."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the run's end, and print the final values.")] = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Answer what a thread waits with, by id. Prints the run that brings the answer. Exits with 4 where it is late."""
    given = json_of(answer, "ANSWER")
    place = f"/threads/{quote(thread_id, safe='')}"
    with connected(url, key) as host:
        answers = {interrupt: given} if interrupt is not None else _answers(_of(host, thread_id), given)
        named: dict[str, Json] = {"assistant_id": agent} if agent is not None else {}
        run = host.post(f"{place}/interrupts", {"answers": answers, **named})
        run_id = str(run["run_id"]) if isinstance(run, dict) else ""
        if not wait:
            print(f"run {run_id}")
            return
        values = host.get(f"{place}/runs/{run_id}/join")
        print_json(values)
        ended = host.get(f"{place}/runs/{run_id}")
    if isinstance(ended, dict) and ended.get("status") != "success":
        sys.exit(RUN_FAILED)


def _answers(waiting: list[dict[str, Json]], given: Json) -> dict[str, Json]:
    ids = [_text(one.get("id")) for one in waiting]
    if isinstance(given, dict) and given and set(given) <= set(ids):
        return given
    if len(ids) == 1:
        return {ids[0]: given}
    if not ids:
        raise Conflict("nothing waits for an answer on this thread")
    raise Conflict(f"{len(ids)} interrupts wait: name one with --id, or answer with {{id: answer}}: {', '.join(ids)}")


def _over_all(host: Host, limit: int, agent: str | None, kind: str | None) -> list[dict[str, Json]]:
    asked: dict[str, str | int] = {"limit": limit}
    asked |= {name: value for name, value in (("agent", agent), ("kind", kind)) if value}
    found = list[dict[str, Json]]()
    for page in host.pages("/interrupts", **asked):
        found += _objects(page)
        if len(found) >= limit:
            break
    return found


def _of(host: Host, thread: str) -> list[dict[str, Json]]:
    return _objects(host.get(f"/threads/{quote(thread, safe='')}/interrupts"))


def _objects(value: Json) -> list[dict[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: Json) -> str:
    return "" if value is None else str(value)
