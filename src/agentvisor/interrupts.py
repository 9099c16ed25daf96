"""What waits for an answer, for programs outside: listed, answered by id, given up.

    from agentvisor import interrupts

    for one in interrupts.list(kind="approval"):
        interrupts.answer(one.thread_id, one.id, "yes")

The host is that of AGENTVISOR_ENDPOINT, with the key of AGENTVISOR_API_KEY. Inside an agent, what asks is
`agentvisor.interrupt`; an agent answers nobody.
"""

from __future__ import annotations

import asyncio
import builtins
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import cast
from urllib.parse import quote, urlencode

from agentvisor.client.connection import API_KEY, DEFAULT_ENDPOINT, ENDPOINT
from agentvisor.client.http import ask_page
from agentvisor.client.socketpair import CHANNEL_FD
from agentvisor.core.errors import PermissionRefused
from agentvisor.protocol.metadata import Json

__all__ = ["Interrupt", "aabandon", "aanswer", "aanswer_all", "abandon", "alist", "answer", "answer_all", "list"]

_PAGE = 1_000
"""Of what is asked for at once."""


@dataclass(frozen=True)
class Interrupt:
    """One thing that waits for an answer."""

    id: str
    thread_id: str
    run_id: str | None
    """The run that asked."""
    agent: str | None
    kind: str
    value: Json
    """What the person is shown."""
    belongs_to: Mapping[str, Json]
    """What it is about: namespace, task, node, tool call; what the framework knows."""
    schema: Json
    """A JSON Schema of the answer; None where it is not known."""
    created_at: str
    """ISO 8601, UTC; `deadline` as well."""
    deadline: str | None
    on_deadline: str | None
    """"cancel" or "answer"."""
    default_answer: Json = None


def list(
    thread_id: str | None = None,
    *,
    agent: str | None = None,
    kind: str | None = None,
    limit: int | None = None,
) -> builtins.list[Interrupt]:
    """What waits, on a thread or on all; all of it, however many pages the host makes of it.

    Over all threads: those of the newest threads first, and exact to a few milliseconds. Of one thread: exact.

    Args:
        thread_id: of which thread; None: of all.
        agent: only what this agent asks.
        kind: only of this kind.
        limit: the first so many of those; None: all.
    """
    if thread_id is not None:
        found = [*map(_interrupt, _objects(_ask("GET", f"/threads/{_quoted(thread_id)}/interrupts")))]
        return [one for one in found if agent in (None, one.agent) and kind in (None, one.kind)][:limit]
    asked = {"limit": min(limit or _PAGE, _PAGE), "agent": agent, "kind": kind}
    known = {name: str(value) for name, value in asked.items() if value is not None}
    pages = _pages(f"/interrupts?{urlencode(known)}")
    return [*islice((_interrupt(one) for page in pages for one in page), limit)]


def answer(thread_id: str, interrupt_id: str, answer: Json, *, agent: str | None = None) -> str:
    """Answer one; returns the id of the run that brings the answer, which is durable.

    `Conflict` where it does not wait, or not any more: it was answered, is overdue, or was given up.

    Args:
        thread_id: where it waits.
        interrupt_id: its id.
        answer: any JSON.
        agent: who goes on; None: the agent that asked. On a copy of a thread, where none has run, name it.
    """
    path = f"/threads/{_quoted(thread_id)}/interrupts/{_quoted(interrupt_id)}"
    return _run_id(_ask("POST", path, {"answer": answer, **_named(agent)}))


def answer_all(thread_id: str, answers: Mapping[str, Json], *, agent: str | None = None) -> str:
    """Answer several of a thread with one run: by their ids; the others go on waiting. Else as `answer`."""
    body: dict[str, Json] = {"answers": dict(answers), **_named(agent)}
    return _run_id(_ask("POST", f"/threads/{_quoted(thread_id)}/interrupts", body))


def abandon(thread_id: str) -> builtins.list[str]:
    """Give up all that waits on a thread; returns what that was. `Conflict` while a run is active."""
    given_up = cast("dict[str, builtins.list[str]]", _ask("DELETE", f"/threads/{_quoted(thread_id)}/interrupts"))
    return given_up["abandoned"]


async def alist(
    thread_id: str | None = None,
    *,
    agent: str | None = None,
    kind: str | None = None,
    limit: int | None = None,
) -> builtins.list[Interrupt]:
    """`list` for coroutines."""
    return await asyncio.to_thread(list, thread_id, agent=agent, kind=kind, limit=limit)


async def aanswer(thread_id: str, interrupt_id: str, answer_: Json, *, agent: str | None = None) -> str:
    """`answer` for coroutines."""
    return await asyncio.to_thread(answer, thread_id, interrupt_id, answer_, agent=agent)


async def aanswer_all(thread_id: str, answers: Mapping[str, Json], *, agent: str | None = None) -> str:
    """`answer_all` for coroutines."""
    return await asyncio.to_thread(answer_all, thread_id, answers, agent=agent)


async def aabandon(thread_id: str) -> builtins.list[str]:
    """`abandon` for coroutines."""
    return await asyncio.to_thread(abandon, thread_id)


def _ask(method: str, path: str, body: Json = None) -> Json:
    return _ask_page(method, path, body)[0]


def _pages(path: str) -> Iterator[builtins.list[dict[str, Json]]]:
    page, following = _ask_page("GET", path)
    yield _objects(page)
    while following is not None:
        page, following = _ask_page("GET", f"{path}&after={_quoted(following)}")
        yield _objects(page)


def _ask_page(method: str, path: str, body: Json = None) -> tuple[Json, str | None]:
    if CHANNEL_FD in os.environ:
        raise PermissionRefused("agentvisor.interrupts is for programs outside: an agent asks, and answers nobody")
    endpoint = os.environ.get(ENDPOINT) or DEFAULT_ENDPOINT
    return ask_page(endpoint, os.environ.get(API_KEY), method, path, body)


def _objects(told: Json) -> builtins.list[dict[str, Json]]:
    return cast("builtins.list[dict[str, Json]]", told)


def _named(agent: str | None) -> dict[str, Json]:
    return {} if agent is None else {"assistant_id": agent}


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _run_id(answered: Json) -> str:
    return str(cast("dict[str, Json]", answered)["run_id"])


def _interrupt(shown: dict[str, Json]) -> Interrupt:
    # A newer host may say more than this version knows.
    known = {name: value for name, value in shown.items() if name in Interrupt.__dataclass_fields__}
    return Interrupt(**known)  # pyright: ignore[reportArgumentType] - the host's own record
