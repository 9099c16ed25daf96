"""`agentvisor threads`: what threads there are, where each stands, and how it came there."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from agentvisor.cli import threads_diff, threads_file, threads_move
from agentvisor.cli.exits import told
from agentvisor.cli.facts import fields, objects, text, thread_path, time
from agentvisor.cli.http import Host, Key, Url, connected
from agentvisor.cli.options import AsJson, InNamespace, Limit, ThreadId, ThreadStatusName
from agentvisor.cli.progress import progress
from agentvisor.cli.show import as_json, cut, is_seen, print_json, print_table
from agentvisor.cli.states import newest
from agentvisor.host.render_typed import Json

app = typer.Typer(help="Threads: what they hold, and taking them elsewhere.", no_args_is_help=True)
_LONGEST = 120
"""Characters of what waits, in a table for people."""


@app.command("list")
@told
def list_threads(
    *,
    status: Annotated[ThreadStatusName | None, typer.Option(help="idle, busy, interrupted or error.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many at most.")] = 20,
    all_: Annotated[bool, typer.Option("--all", help="All of them, however many.")] = False,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """List threads, the newest first.

    Example: agentvisor threads list --status interrupted
    """
    body: dict[str, Json] = {"status": status.value} if status else {}
    body["select"] = ["thread_id", "status", "created_at", "updated_at", "metadata", "interrupts", "error"]
    with connected(url, key) as host:
        threads, more = _found(host, body, None if all_ else limit)
    if json:
        print_json(list[Json](threads))
        return
    rows = [
        (text(one, "thread_id"), text(one, "status"), time(one, "updated_at"), _agent(one), _waiting(one))
        for one in threads
    ]
    print_table(("thread", "status", "updated", "agent", "waits for"), rows)
    if more and is_seen():
        print(f"agentvisor: there are more than these {len(threads)}: --limit or --all", file=sys.stderr)


def _found(host: Host, body: dict[str, Json], most: int | None) -> tuple[list[dict[str, Json]], bool]:
    """Threads, and whether there are more; a thread that is made meanwhile pushes one into the next page again."""
    found, more = dict[str, dict[str, Json]](), False
    with progress("threads", most) as advance:
        for page in host.searched("/threads/search", body, most):
            found.update((text(one, "thread_id"), one) for one in page.found)
            more = page.more
            advance(len(page.found))
    return list(found.values()), more


@app.command("show")
@told
def show_thread(
    thread_id: ThreadId,
    *,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """Show a thread: its status, its runs with their attempts, its values.

    Example: agentvisor threads show order-7
    """
    place = thread_path(thread_id)
    with connected(url, key) as host:
        thread = host.get(place)
        runs = host.get(f"{place}/runs", limit=20)
    if json:
        print_json({**thread, "runs": runs} if isinstance(thread, dict) else thread)
        return
    for one in objects([thread]):
        facts = (text(one, "thread_id"), text(one, "status"), time(one, "created_at"), time(one, "updated_at"))
        print_table(
            ("thread", "status", "created", "updated", "agent", "waits for"), [(*facts, _agent(one), _waiting(one))]
        )
        print()
        print_table(("run", "status", "created", "attempt", "ended by", "reason"), [*_attempts(objects(runs))])
        print()
        print_json(one.get("values"))


@app.command("history")
@told
def show_history(
    thread_id: ThreadId,
    *,
    namespace: InNamespace = "",
    limit: Limit = 20,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """List a thread's checkpoints, the newest first.

    Example: agentvisor threads history order-7 --limit 5
    """
    with connected(url, key) as host:
        states = newest(host, thread_id, namespace, limit)
    if json:
        print_json(list[Json](states))
        return
    print_table(("checkpoint", "created", "step", "next", "tasks"), [_checkpoint(one) for one in states])


app.command("diff")(told(threads_diff.diff))
app.command("copy")(told(threads_move.copy))
app.command("delete")(told(threads_move.delete))
app.command("export")(told(threads_file.export))
app.command("import")(told(threads_file.import_))


def _checkpoint(state: Mapping[str, Json]) -> Sequence[str]:
    metadata, upcoming = state.get("metadata"), state.get("next")
    step = metadata.get("step") if isinstance(metadata, dict) else None
    return (
        text(state, "checkpoint_id"),
        time(state, "created_at"),
        str(step),
        ", ".join(map(str, upcoming)) if isinstance(upcoming, list) else "",
        ", ".join(map(_task, objects(state.get("tasks")))),
    )


def _task(task: Mapping[str, Json]) -> str:
    """With the namespace of its subgraph, where it calls one."""
    below = text(fields(task.get("checkpoint")), "checkpoint_ns")
    return f"{task.get('name')} {threads_diff.standing(task)}{f' ({below})' if below else ''}"


def _attempts(runs: Sequence[Mapping[str, Json]]) -> Sequence[Sequence[str]]:
    rows: list[Sequence[str]] = []
    for run in runs:
        attempts = objects(run.get("attempts")) or [{}]
        for index, attempt in enumerate(attempts):
            named = (text(run, "run_id"), text(run, "status"), time(run, "created_at")) if index == 0 else ("", "", "")
            rows.append((*named, text(attempt, "attempt"), text(attempt, "ending"), text(attempt, "reason")))
    return rows


def _agent(thread: Mapping[str, Json]) -> str:
    metadata = thread.get("metadata")
    return text(metadata, "graph_id") if isinstance(metadata, dict) else ""


def _waiting(thread: Mapping[str, Json]) -> str:
    interrupts = thread.get("interrupts")
    asked = interrupts.values() if isinstance(interrupts, dict) else ()
    questions = [as_json(one.get("value")) for each in asked for one in objects(each)]
    error = thread.get("error")
    if not questions and isinstance(error, dict):
        return cut(f"{text(error, 'error')}: {text(error, 'message')}", _LONGEST)
    return cut("; ".join(questions), _LONGEST)
