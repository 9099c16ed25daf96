"""`agentvisor threads`: what threads there are, where each stands, and how it came there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated
from urllib.parse import quote

import typer

from agentvisor.cli.exits import told
from agentvisor.cli.http import Key, Url, connected
from agentvisor.cli.show import as_json, print_json, print_table
from agentvisor.host.render_typed import Json

app = typer.Typer(help="Threads: list, show, history.", no_args_is_help=True)

ThreadId = Annotated[str, typer.Argument(help="Id of the thread.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the host's answer.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many at most.")]


@app.command("list")
@told
def list_threads(
    *,
    status: Annotated[str | None, typer.Option(help="idle, busy, interrupted or error.")] = None,
    limit: Limit = 20,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """List threads, the newest first."""
    body: dict[str, Json] = {"limit": limit, **({"status": status} if status else {})}
    body["select"] = ["thread_id", "status", "created_at", "updated_at", "metadata", "interrupts", "error"]
    with connected(url, key) as host:
        threads = host.post("/threads/search", body)
    if json:
        print_json(threads)
        return
    rows = [
        (_text(one, "thread_id"), _text(one, "status"), _time(one, "updated_at"), _agent(one), _waiting(one))
        for one in _objects(threads)
    ]
    print_table(("thread", "status", "updated", "agent", "waits for"), rows)


@app.command("show")
@told
def show_thread(
    thread_id: ThreadId,
    *,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """Show a thread: its status, its runs with their attempts, its values."""
    place = f"/threads/{quote(thread_id, safe='')}"
    with connected(url, key) as host:
        thread = host.get(place)
        runs = host.get(f"{place}/runs", limit=20)
    if json:
        print_json({**thread, "runs": runs} if isinstance(thread, dict) else thread)
        return
    for one in _objects([thread]):
        print_table(
            ("thread", "status", "created", "updated", "agent", "waits for"),
            [
                (
                    _text(one, "thread_id"),
                    _text(one, "status"),
                    _time(one, "created_at"),
                    _time(one, "updated_at"),
                    _agent(one),
                    _waiting(one),
                )
            ],
        )
        print()
        print_table(("run", "status", "created", "attempt", "ended by", "reason"), [*_attempts(_objects(runs))])
        print()
        print_json(one.get("values"))


@app.command("history")
@told
def show_history(
    thread_id: ThreadId,
    *,
    limit: Limit = 20,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """List a thread's checkpoints, the newest first."""
    with connected(url, key) as host:
        states = host.get(f"/threads/{quote(thread_id, safe='')}/history", limit=limit)
    if json:
        print_json(states)
        return
    print_table(("checkpoint", "created", "step", "next", "tasks"), [_checkpoint(one) for one in _objects(states)])


def _checkpoint(state: Mapping[str, Json]) -> Sequence[str]:
    metadata, upcoming = state.get("metadata"), state.get("next")
    step = metadata.get("step") if isinstance(metadata, dict) else None
    return (
        _text(state, "checkpoint_id"),
        _time(state, "created_at"),
        str(step),
        ", ".join(map(str, upcoming)) if isinstance(upcoming, list) else "",
        ", ".join(_task(one) for one in _objects(state.get("tasks"))),
    )


def _task(task: Mapping[str, Json]) -> str:
    if task.get("error"):
        said = "failed"
    elif task.get("result") is not None:
        said = "done"
    else:
        said = "asked" if task.get("interrupts") else "unfinished"
    return f"{task.get('name')} {said}"


def _attempts(runs: Sequence[Mapping[str, Json]]) -> Sequence[Sequence[str]]:
    rows: list[Sequence[str]] = []
    for run in runs:
        attempts = _objects(run.get("attempts")) or [{}]
        for index, attempt in enumerate(attempts):
            named = (
                (_text(run, "run_id"), _text(run, "status"), _time(run, "created_at")) if index == 0 else ("", "", "")
            )
            rows.append((*named, _text(attempt, "attempt"), _text(attempt, "ending"), _text(attempt, "reason")))
    return rows


def _objects(value: Json) -> list[dict[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(facts: Mapping[str, Json], name: str) -> str:
    value = facts.get(name)
    return "" if value is None else str(value)


def _time(facts: Mapping[str, Json], name: str) -> str:
    """To the second; times of this API are UTC."""
    return _text(facts, name)[:19].replace("T", " ")


def _agent(thread: Mapping[str, Json]) -> str:
    metadata = thread.get("metadata")
    return _text(metadata, "graph_id") if isinstance(metadata, dict) else ""


def _waiting(thread: Mapping[str, Json]) -> str:
    interrupts = thread.get("interrupts")
    asked = interrupts.values() if isinstance(interrupts, dict) else ()
    questions = [as_json(one.get("value")) for each in asked for one in _objects(each)]
    error = thread.get("error")
    if not questions and isinstance(error, dict):
        return f"{_text(error, 'error')}: {_text(error, 'message')}"[:120]
    return "; ".join(questions)[:120]
