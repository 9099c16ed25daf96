"""A client of any host that is there: it asks again where no answer comes, and looks for what may have been done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import httpx

from agentvisor.cli.torturing.truths import SeenCheckpoint

Json = dict[str, object]

_AGAIN = 0.2
_ALL = 1000
"""Checkpoints or runs; a torture's thread has fewer."""


class NoAnswer(Exception):
    """No host answered in time, or it answered that it cannot now."""


class Refused(Exception):
    """A host answered with an error that asking again does not change."""


class Client:
    """Each request goes to a host that is up, whichever: they are alike."""

    def __init__(self, url: Callable[[], Awaitable[str]], http: httpx.AsyncClient) -> None:
        self._url = url
        self._http = http
        self.unanswered = 0
        """Requests that a fault has cost an answer."""

    async def create_thread(self, thread_id: str) -> None:
        await self._patiently("POST", "/threads", {"thread_id": thread_id, "if_exists": "do_nothing"})

    async def start_run(self, thread_id: str, number: int, asked: Json) -> str:
        """Start the thread's run of that number, once: its id. What is asked for is an answer, or the agent's input."""
        given = (
            {"command": {"resume": asked["answer"]}} if "answer" in asked else {"input": {"asked": asked, "round": 0}}
        )
        body: Json = {
            "assistant_id": "tortured",
            **given,
            # By this a caller knows its run where the acceptance was lost.
            "metadata": {"number": number, **asked},
            "config": {"recursion_limit": 1000},
        }
        while True:
            try:
                return str(cast("Json", await self._ask("POST", f"/threads/{thread_id}/runs", body))["run_id"])
            except NoAnswer:
                # It may be on its way, or recorded with its answer lost: a caller has to look.
                await asyncio.sleep(_AGAIN)
                for run in await self.runs(thread_id):
                    if cast("Json", run["metadata"]).get("number") == number:
                        return str(run["run_id"])

    async def run(self, thread_id: str, run_id: str) -> Json:
        return cast("Json", await self._ask("GET", f"/threads/{thread_id}/runs/{run_id}"))

    async def runs(self, thread_id: str) -> list[Json]:
        return cast("list[Json]", await self._patiently("GET", f"/threads/{thread_id}/runs?limit={_ALL}"))

    async def history(self, thread_id: str, *, patiently: bool = True) -> list[Json]:
        ask = self._patiently if patiently else self._ask
        return cast("list[Json]", await ask("GET", f"/threads/{thread_id}/history?limit={_ALL}"))

    async def compactions(self, thread_id: str) -> int:
        found = cast("Json", await self._patiently("GET", f"/threads/{thread_id}/storage"))
        return int(str(found["compactions"]))

    async def _patiently(self, method: str, path: str, body: Json | None = None) -> object:
        """Ask until there is an answer: for what can be asked twice."""
        while True:
            try:
                return await self._ask(method, path, body)
            except NoAnswer:
                await asyncio.sleep(_AGAIN)

    async def _ask(self, method: str, path: str, body: Json | None = None) -> object:
        url = await self._url()
        try:
            response = await self._http.request(method, url + path, json=body)
        except httpx.HTTPError as error:
            self.unanswered += 1
            raise NoAnswer from error
        if response.status_code >= 500:
            self.unanswered += 1
            raise NoAnswer(response.text)
        if response.is_error:
            raise Refused(f"{method} {path}: HTTP {response.status_code} {response.text[:300]}")
        return cast("object", response.json())


def checkpoints(history: list[Json]) -> list[SeenCheckpoint]:
    """A history as it comes from a host."""
    return [
        SeenCheckpoint(
            id=str(cast("Json", one["checkpoint"])["checkpoint_id"]),
            parent=_id_of(one.get("parent_checkpoint")),
            step=int(str(cast("Json", one["metadata"])["step"])),
            finished_tasks=frozenset(
                str(task["id"]) for task in cast("list[Json]", one["tasks"]) if task.get("result") is not None
            ),
        )
        for one in history
    ]


def _id_of(checkpoint: object) -> str | None:
    return None if checkpoint is None else str(cast("Json", checkpoint)["checkpoint_id"])
