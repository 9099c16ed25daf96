"""`agentvisor threads copy` and `agentvisor threads delete`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from agentvisor.cli import complete
from agentvisor.cli.exits import exit_code, say
from agentvisor.cli.facts import fields, text, thread_path
from agentvisor.cli.http import Key, Url, connected
from agentvisor.cli.options import AsJson, ThreadId, Yes
from agentvisor.cli.progress import progress
from agentvisor.cli.show import print_json
from agentvisor.core.errors import AgentVisorError, InvalidInput, PermissionRefused, Unavailable
from agentvisor.host.render_typed import Json

_NAMED = 5
"""Ids that a question names."""


def copy(
    thread_id: ThreadId,
    *,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """Make a new thread that begins where this one stands: its current checkpoint with its pending writes.

    Prints the new thread's id. All of a thread is taken along by `threads export` and `threads import`.

    Example: agentvisor threads copy order-7
    """
    with connected(url, key) as host:
        made = host.post(f"{thread_path(thread_id)}/copy")
    if json:
        print_json(made)
        return
    copied = fields(made)
    print(text(copied, "thread_id"))
    warnings = copied.get("warnings")
    for one in warnings if isinstance(warnings, list) else ():
        print(f"agentvisor: {one}", file=sys.stderr)


def delete(
    thread_ids: Annotated[
        list[str], typer.Argument(metavar="THREAD...", help="Ids of the threads.", autocompletion=complete.threads)
    ],
    *,
    yes: Yes = False,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """Delete threads with all that belongs to them: checkpoints, runs, values. A run that is at work loses its thread.

    Asks first; where nobody can be asked, in a pipe, it needs --yes. Those that can be deleted are, whatever becomes of
    the others, and the exit code is the first failure's.

    Example: agentvisor threads delete order-7 order-8 --yes
    """
    named = list(dict.fromkeys(thread_ids))
    if not yes:
        _agreed(named)
    deleted, failed = list[str](), dict[str, AgentVisorError]()
    with connected(url, key) as host, progress("deleting", len(named)) as advance:
        for one in named:
            try:
                host.delete(thread_path(one))
                deleted.append(one)
            except (Unavailable, PermissionRefused):
                raise  # the others would fare no better
            except AgentVisorError as error:
                failed[one] = error
            advance(1)
    if json:
        reasons: dict[str, Json] = {one: error.message for one, error in failed.items()}
        print_json({"deleted": list[Json](deleted), "failed": reasons})
    elif deleted:
        print("\n".join(f"deleted {one}" for one in deleted))
    for error in failed.values():
        say(error)
    if failed:
        sys.exit(exit_code(next(iter(failed.values()))))


def _agreed(named: list[str]) -> None:
    """Return where a person agrees."""
    if not sys.stdin.isatty():
        raise InvalidInput("nobody is there to be asked: delete with --yes")
    shown = ", ".join(named[:_NAMED]) + (f" and {len(named) - _NAMED} more" if len(named) > _NAMED else "")
    typer.confirm(
        f"Delete {shown}, with all that belongs to {'it' if len(named) == 1 else 'them'}?", abort=True, err=True
    )
