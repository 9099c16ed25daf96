"""`agentvisor runs`: the runs of a thread, their attempts and what ended each; cancelling one, following one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import typer

from agentvisor.cli import complete, runs_tail
from agentvisor.cli.exits import RUN_FAILED, told
from agentvisor.cli.facts import fields, has_ended, objects, run_path, text, thread_path, time
from agentvisor.cli.http import Host, Key, Url, connected
from agentvisor.cli.options import AsJson, Limit, RunId, RunStatusName, ThreadId
from agentvisor.cli.show import as_json, print_json, print_table
from agentvisor.core.errors import NotFound
from agentvisor.host.render_typed import Json

app = typer.Typer(help="Runs of a thread.", no_args_is_help=True)


@app.command("list")
@told
def list_runs(
    thread_id: ThreadId,
    *,
    status: Annotated[
        RunStatusName | None, typer.Option(help="pending, running, success, error, timeout or interrupted.")
    ] = None,
    limit: Limit = 20,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """List a thread's runs, the newest first.

    Example: agentvisor runs list order-7 --status error
    """
    asked: dict[str, str | int] = {"limit": limit, **({"status": status.value} if status else {})}
    with connected(url, key) as host:
        runs = host.get(f"{thread_path(thread_id)}/runs", **asked)
    if json:
        print_json(runs)
        return
    rows = [
        (
            text(one, "run_id"),
            text(one, "status"),
            time(one, "created_at"),
            _took(one),
            str(len(objects(one.get("attempts")))),
            _error(one),
        )
        for one in objects(runs)
    ]
    print_table(("run", "status", "created", "took", "attempts", "error"), rows)


@app.command("show")
@told
def show_run(
    thread_id: ThreadId,
    run_id: RunId,
    *,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """Show a run: what it was given, its attempts with what ended each, its error.

    Example: agentvisor runs show order-7 1f0c5a1e-...
    """
    with connected(url, key) as host:
        run = fields(host.get(run_path(thread_id, run_id)))
    if json:
        print_json(run)
        return
    facts = [
        ("run", text(run, "run_id")),
        ("thread", text(run, "thread_id")),
        ("status", text(run, "status")),
        ("assistant", text(run, "assistant_id")),
        ("created", time(run, "created_at")),
        ("updated", time(run, "updated_at")),
        ("multitask", text(run, "multitask_strategy")),
        ("metadata", as_json(run.get("metadata"))),
    ]
    given = fields(run.get("kwargs"))
    facts += [(name, as_json(value)) for name, value in given.items() if value not in (None, [], {}, "", False)]
    if run.get("error"):
        facts.append(("error", _error(run)))
    print_table(("", ""), facts)
    print()
    rows = [
        (
            text(one, "attempt"),
            time(one, "scheduled_at"),
            time(one, "started_at"),
            time(one, "ended_at"),
            text(one, "ending"),
            text(one, "reason"),
            text(one, "host_id"),
        )
        for one in objects(run.get("attempts"))
    ]
    print_table(("attempt", "scheduled", "started", "ended", "ended by", "reason", "host"), rows)


@app.command("cancel")
@told
def cancel_run(
    thread_id: ThreadId,
    run_id: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="Id of the run. Without it: the one that is at work, or else waits.",
            autocompletion=complete.runs,
        ),
    ] = None,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Return once it has ended.")] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Undo it: its checkpoints go, and the thread is as before it.")
    ] = False,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """Cancel a run. Once this returns, it is not started again, whatever happens; with --wait it has ended.

    Example: agentvisor runs cancel order-7 --wait
    """
    with connected(url, key) as host:
        chosen = run_id or _unfinished(host, thread_id)
        place, action = run_path(thread_id, chosen), "rollback" if rollback else "interrupt"
        host.wait(f"{place}/cancel?wait={'true' if wait else 'false'}&action={action}")
        status = "cancelling"
        if wait:
            status = "gone" if rollback else text(fields(host.get(place)), "status")
    if json:
        print_json({"thread_id": thread_id, "run_id": chosen, "status": status})
    else:
        print(f"run {chosen} {status}")


def _unfinished(host: Host, thread: str) -> str:
    """The oldest that has not ended: those behind it wait."""
    found = [one for one in objects(host.get(f"{thread_path(thread)}/runs", limit=1000)) if not has_ended(one)]
    if not found:
        raise NotFound(f"no run of thread {thread} waits or is at work")
    return text(found[-1], "run_id")


@app.command("tail")
@told
def tail_run(
    thread_id: ThreadId,
    run_id: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="Id of the run. Without it: the newest.", autocompletion=complete.runs),
    ] = None,
    *,
    from_start: Annotated[bool, typer.Option("--from-start", help="Show all events that are kept.")] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=10_000, help="Show so many of those that have come before.")
    ] = 10,
    url: Url = None,
    key: Key = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON value a line: each event, and the run's end.")
    ] = False,
) -> None:
    """Follow a run as it goes, to its end, through whatever restarts. Ctrl-C leaves the run alone.

    Ends as `run` does: with 0 where the run succeeds or asks something, with 1 where it fails or is cancelled.

    Example: agentvisor runs tail order-7
    """
    with connected(url, key) as host:
        chosen = run_id or _newest(host, thread_id)
        ended = runs_tail.tail(host, thread_id, chosen, None if from_start else lines, as_json=json)
    if ended.get("status") != "success":
        sys.exit(RUN_FAILED)


def _newest(host: Host, thread: str) -> str:
    found = objects(host.get(f"{thread_path(thread)}/runs", limit=1000))
    if not found:
        raise NotFound(f"thread {thread} has no runs")
    # Of those that have not ended the one whose turn it is; those behind it wait.
    unfinished = [one for one in found if not has_ended(one)]
    return text(unfinished[-1] if unfinished else found[0], "run_id")


def _took(run: Mapping[str, Json]) -> str:
    try:
        began, ended = (datetime.fromisoformat(text(run, name)) for name in ("created_at", "updated_at"))
    except ValueError:
        return ""
    return f"{(ended - began).total_seconds():.1f} s" if has_ended(run) else ""


def _error(run: Mapping[str, Json]) -> str:
    error = fields(run.get("error"))
    return f"{text(error, 'error')}: {text(error, 'message')}" if error else ""
