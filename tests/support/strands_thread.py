"""A thread for Strands' runs without a host: what they save is kept as JSON, and each run has an agent of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from agentvisor._strands.asked import Asked
from agentvisor._strands.parts import subject_of
from agentvisor.client.strict_json import dump
from agentvisor.guest.runners.strands_order import Ended, Host, Order
from agentvisor.guest.runners.strands_run import Run


class StrandsThread:
    """`run` makes the agent anew, as a process does; `dies_after` stops it for ever once so many saves are stored."""

    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make
        self.stored: dict[str, list[bytes]] = {}
        self.reports: list[list[Asked]] = []
        self.events: list[dict[str, Any]] = []
        self.leaving = False
        self.subject: Any = None
        """What ran last."""
        self._runs = 0
        self._dead: asyncio.Event | None = None
        self._left = 0

    @property
    def waiting(self) -> list[Asked]:
        return self.reports[-1] if self.reports else []

    def last(self, key: str) -> Any:
        kept = self.stored.get(key)
        return json.loads(kept[-1]) if kept else None

    async def run(
        self, given: Any = None, answers: dict[str, Any] | None = None, *, run_id: str = "", dies_after: int = 0,
        **more: Any,
    ) -> Ended | None:  # fmt: skip
        """None where it died. A run id that was there is another attempt of that run."""
        self._runs += not run_id
        order = Order(run_id or f"run-{self._runs}", given, answers or {}, **more)
        self._left, self._dead = dies_after, asyncio.Event()
        self.subject = subject_of(self.make())
        assert self.subject is not None
        host = Host(self._load, self._save, self._report, lambda event: self.events.append(dict(event)), self._leaves)
        running = asyncio.ensure_future(Run(self.subject, order, host).run())
        died = asyncio.ensure_future(self._dead.wait())
        await asyncio.wait([running, died], return_when=asyncio.FIRST_COMPLETED)
        died.cancel()
        if not self._dead.is_set():
            return await running
        # A graph may swallow one: asyncio.wait_for does, in Python 3.11, where an event comes at the same moment.
        while not running.done():
            running.cancel()
            await asyncio.wait([running], timeout=0.05)
        return None

    def _leaves(self) -> bool:
        return self.leaving

    async def _load(self, key: str) -> Any:
        return self.last(key)

    async def _save(self, key: str, state: Any) -> None:
        if self._dead is not None and self._dead.is_set():
            raise asyncio.CancelledError
        self.stored.setdefault(key, []).append(dump(state, "state"))
        await asyncio.sleep(0)
        self._left -= 1
        if self._left == 0 and self._dead is not None:
            self._dead.set()
            await asyncio.Event().wait()

    def _report(self, asked: Sequence[Asked]) -> None:
        if self._dead is None or not self._dead.is_set():
            self.reports.append(list(asked))
