"""`agentvisor run`: one run of an agent, its events as they come, and the values that it ends with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer

from agentvisor.cli import complete
from agentvisor.cli.exits import RUN_FAILED
from agentvisor.cli.facts import thread_path
from agentvisor.cli.http import Host, Key, StreamedEvent, Url, connected
from agentvisor.cli.show import EventPrinter, as_json, print_json
from agentvisor.core.errors import InvalidInput
from agentvisor.host.render_typed import Json

Given = Annotated[
    str | None, typer.Option("--input", help="The input, as JSON; @file reads a file, - reads standard input.")
]
Answer = Annotated[
    str | None, typer.Option("--resume", help="The answer to the question that the thread waits with, as JSON.")
]


def run(
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="Name of the agent, as configured.", autocompletion=complete.agents)
    ],
    *,
    input: Given = None,
    resume: Answer = None,
    thread: Annotated[
        str | None,
        typer.Option(
            "--thread",
            help="Thread to run on; created where it does not exist. Default: new.",
            autocompletion=complete.threads,
        ),
    ] = None,
    url: Url = None,
    key: Key = None,
    json: Annotated[bool, typer.Option("--json", help="Print the final values only, as JSON.")] = False,
) -> None:
    """Run an agent and follow it to its end. Exits with 1 where the run fails.

    Example: agentvisor run refunds --thread order-7 --input '{"order": "7"}'
    """
    body: dict[str, Json] = {
        "assistant_id": agent,
        "stream_mode": ["updates", "messages-tuple", "custom"],
        "if_not_exists": "create",
    }
    if input is not None:
        body["input"] = json_of(input, "--input")
    if resume is not None:
        body["command"] = {"resume": json_of(resume, "--resume")}
    named = thread if thread is not None else str(uuid4())
    with connected(url, key) as host:
        sys.exit(_follow(host, named, body, quiet=json))


def _follow(host: Host, thread: str, body: dict[str, Json], *, quiet: bool) -> int:
    """Print the run; the exit code."""
    place = thread_path(thread)
    printer = EventPrinter(quiet=quiet)
    printer.begin(thread)
    run_id = ""
    for event in host.stream(f"{place}/runs/stream", body):
        run_id = _run_id(event) or run_id
        printer.show(event)
    ended = host.patiently(f"{place}/runs/{run_id}")
    state = host.patiently(f"{place}/state")
    if isinstance(ended, dict) and ended.get("status") != "success":
        printer.failed(ended)
        return RUN_FAILED
    if isinstance(state, dict):
        if not state.get("interrupts"):
            # What the run gave back: a plain agent's output is not what it has saved.
            state["values"] = host.patiently(f"{place}/runs/{run_id}/join") or {}
        if quiet:
            print_json(state.get("values"))
        else:
            printer.end(state, f"run {body['assistant_id']} --thread {thread} --resume JSON")
    return 0


def _run_id(event: StreamedEvent) -> str:
    return str(event.data.get("run_id", "")) if event.event == "metadata" and isinstance(event.data, dict) else ""


def json_of(given: str, option: str) -> Json:
    """The value of an option that is JSON, or says where to read it."""
    from agentvisor.host.http.json import decode  # it loads FastAPI, and no Tab shall wait for that

    try:
        if given == "-":
            text = sys.stdin.read()
        elif given.startswith("@"):
            text = Path(given[1:]).read_text(encoding="utf-8")
        else:
            text = given
        return decode(text.encode("utf-8", "surrogateescape"), option)
    except OSError as error:
        raise InvalidInput(f"{option}: {given[1:]} cannot be read: {error.strerror}") from error
    except ValueError as error:
        if given == "-" or given.startswith("@"):
            raise InvalidInput(f"{option}: {given[1:] or 'standard input'} is no JSON text: {error}") from error
        raise InvalidInput(f"{error}; a text needs quotes, as in {option} '{as_json(given)}'") from error
