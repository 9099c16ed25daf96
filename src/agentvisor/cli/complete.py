"""Ids and names that the shell completes: the host is asked, shortly; where none answers there is nothing to choose."""

from __future__ import annotations

import os
from collections.abc import Callable

import typer

from agentvisor.cli.facts import objects, text, thread_path
from agentvisor.cli.http import Host, connected
from agentvisor.cli.states import called

_SECONDS = 1.0
"""What a person who has pressed Tab waits at most for one answer."""
_MOST = 100


def threads(ctx: typer.Context, incomplete: str) -> list[str]:
    """Thread ids, the newest first."""

    def ask(host: Host) -> list[str]:
        found = host.post("/threads/search", {"limit": _MOST, "select": ["thread_id"]})
        return [text(one, "thread_id") for one in objects(found)]

    return _quietly(ctx, incomplete, ask)


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Runs of the thread that was named before."""
    return _of_thread(ctx, incomplete, "runs", "run_id")


def interrupts(ctx: typer.Context, incomplete: str) -> list[str]:
    """What waits on the thread that was named before."""
    return _of_thread(ctx, incomplete, "interrupts", "id")


def checkpoints(ctx: typer.Context, incomplete: str) -> list[str]:
    """Checkpoints of the thread that was named before, the newest first."""
    return _of_thread(ctx, incomplete, "history?limit=100", "checkpoint_id")


def namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    """Subgraphs of the thread that was named before, as its history has them."""
    thread = _thread(ctx)
    if thread is None:
        return []

    def ask(host: Host) -> list[str]:
        return called(*objects(host.get(f"{thread_path(thread)}/history?limit={_MOST}")))

    return _quietly(ctx, incomplete, ask)


def agents(ctx: typer.Context, incomplete: str) -> list[str]:
    """The agents of the host."""

    def ask(host: Host) -> list[str]:
        info = host.get("/info")
        named = info.get("agents") if isinstance(info, dict) else None
        return [str(one) for one in named] if isinstance(named, list) else []

    return _quietly(ctx, incomplete, ask)


def _of_thread(ctx: typer.Context, incomplete: str, what: str, field: str) -> list[str]:
    thread = _thread(ctx)
    if thread is None:
        return []

    def ask(host: Host) -> list[str]:
        return [text(one, field) for one in objects(host.get(f"{thread_path(thread)}/{what}"))]

    return _quietly(ctx, incomplete, ask)


def _thread(ctx: typer.Context) -> str | None:
    """The thread that was named before; where an option's value is typed, arguments are not told apart yet."""
    named = ctx.params.get("thread_id") or next(iter(ctx.args), None)
    return named if isinstance(named, str) else None


def _quietly(ctx: typer.Context, incomplete: str, ask: Callable[[Host], list[str]]) -> list[str]:
    url = ctx.params.get("url") or os.environ.get("AGENTVISOR_ENDPOINT")
    key = ctx.params.get("key") or os.environ.get("AGENTVISOR_API_KEY")
    try:
        with connected(url, key, seconds=_SECONDS) as host:
            return [one for one in ask(host) if one.startswith(incomplete)]
    except Exception:  # noqa: BLE001 - whatever it is, a line that is being typed is no place for it
        return []
