"""`agentvisor interrupts`: what waits for people, and what they say."""

from __future__ import annotations

import json as json_texts
import sys
from typing import Annotated

import typer
from typer.core import TyperGroup
from typing_extensions import override

from agentvisor.cli import complete
from agentvisor.cli.asking import asked, choose
from agentvisor.cli.exits import RUN_FAILED, told
from agentvisor.cli.facts import fields, objects, run_path, text, thread_path, time
from agentvisor.cli.http import Host, Key, Url, connected
from agentvisor.cli.options import AsJson, ThreadId
from agentvisor.cli.run import json_of
from agentvisor.cli.show import EventPrinter, as_json, cut, print_json, print_table
from agentvisor.core.errors import Conflict, InvalidInput, Unavailable
from agentvisor.host.render_typed import Json

_LONGEST = 120
"""Characters of a question, in a table for people."""


class _ListsByItself(TyperGroup):
    """A group that lists where no command of it is named: `agentvisor interrupts --agent refunds`."""

    @override
    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride] - typer's own context
        if not args or (args[0].startswith("-") and args[0] not in ("--help", "-h")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(help="What waits for people: list it, answer it.", cls=_ListsByItself)


@app.command("list")
@told
def list_interrupts(
    *,
    thread: Annotated[
        str | None, typer.Option("--thread", help="Of this thread only, exactly.", autocompletion=complete.threads)
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Of what this agent asks only.", autocompletion=complete.agents)
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Of this kind only.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="The first so many.")] = 100,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """List what waits for an answer, over all threads.

    Example: agentvisor interrupts list --agent refunds
    """
    with connected(url, key) as host:
        found = _of(host, thread) if thread is not None else _over_all(host, limit, agent, kind)
    if thread is not None:
        found = [one for one in found if agent in (None, one.get("agent")) and kind in (None, one.get("kind"))]
    found = found[:limit]
    if json:
        print_json(list[Json](found))
        return
    names, times = ("thread_id", "id", "agent", "kind"), ("created_at", "deadline")
    rows = [
        (
            *(text(one, name) for name in names),
            *(time(one, name) for name in times),
            cut(as_json(one.get("value")), 120),
        )
        for one in found
    ]
    print_table(("thread", "interrupt", "agent", "kind", "asked", "deadline", "waits for"), rows)


def answer(
    thread_id: ThreadId,
    answer: Annotated[
        str | None,
        typer.Argument(
            metavar="ANSWER",
            help="The answer, as JSON; @file reads a file, - reads standard input. Without it you are asked.",
            show_default=False,
        ),
    ] = None,
    *,
    interrupt: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Id of the interrupt. Without it: of the only one, or the answer is {id: answer}.",
            autocompletion=complete.interrupts,
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            help="Who goes on, where no run of the thread tells: on a copy. Default: who asked.",
            autocompletion=complete.agents,
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the run's end, and print the final values.")] = False,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """Answer what a thread waits with, by id. Prints the run that brings the answer. Exits with 4 where it is late.

    Left out on a terminal, the answer is asked for: the question is shown with what an answer looks like.

    Example: agentvisor interrupts answer order-7 '"yes"' --wait
    """
    with connected(url, key) as host:
        if answer is not None:
            given = json_of(answer, "ANSWER")
            answers = {interrupt: given} if interrupt is not None else _answers(_of(host, thread_id), given)
        else:
            answers = _asked(_of(host, thread_id), interrupt)
        named: dict[str, Json] = {"assistant_id": agent} if agent is not None else {}
        run = fields(host.post(f"{thread_path(thread_id)}/interrupts", {"answers": answers, **named}))
        run_id = text(run, "run_id")
        if not wait:
            if json:
                print_json(run)
            else:
                print(f"run {run_id}")
            return
        place = run_path(thread_id, run_id)
        try:
            values, ended = host.joined(place), fields(host.patiently(place))
        except Unavailable as error:
            raise Unavailable(f"run {run_id} has the answer, and its end is not known: {error.message}") from error
    if ended.get("status") != "success":
        EventPrinter(quiet=True).failed(ended)
        sys.exit(RUN_FAILED)
    print_json(values)


app.command("answer")(told(answer))


def _answers(waiting: list[dict[str, Json]], given: Json) -> dict[str, Json]:
    ids = [text(one, "id") for one in waiting]
    if isinstance(given, dict) and given and set(given) <= set(ids):
        return given
    if len(ids) == 1:
        return {ids[0]: given}
    if not ids:
        raise _nothing()
    raise Conflict(f"{len(ids)} interrupts wait: name one with --id, or answer with {{id: answer}}: {', '.join(ids)}")


def _asked(waiting: list[dict[str, Json]], interrupt: str | None) -> dict[str, Json]:
    """What a person at the terminal says, of one interrupt."""
    if not sys.stdin.isatty():
        raise InvalidInput(
            "ANSWER is missing, and nobody is there to be asked: give it as JSON, as in "
            f"agentvisor interrupts answer THREAD {json_texts.dumps(json_texts.dumps('yes'))}"
        )
    if not waiting:
        raise _nothing()
    found = [one for one in waiting if interrupt in (None, one.get("id"))]
    if not found:
        ids = ", ".join(text(one, "id") for one in waiting)
        raise Conflict(f"interrupt {interrupt} does not wait; what waits: {ids}")
    chosen = found[0] if len(found) == 1 else choose(found)
    return {text(chosen, "id"): asked(chosen)}


def _nothing() -> Conflict:
    return Conflict("nothing waits for an answer on this thread")


def _over_all(host: Host, limit: int, agent: str | None, kind: str | None) -> list[dict[str, Json]]:
    asked_for: dict[str, str | int] = {"limit": limit}
    asked_for |= {name: value for name, value in (("agent", agent), ("kind", kind)) if value}
    found = list[dict[str, Json]]()
    for page in host.pages("/interrupts", **asked_for):
        found += objects(page)
        if len(found) >= limit:
            break
    return found


def _of(host: Host, thread: str) -> list[dict[str, Json]]:
    return objects(host.get(f"{thread_path(thread)}/interrupts"))
