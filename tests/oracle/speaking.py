"""What a client asks of a server and hears back, written down so that two servers can be compared."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError
from tests.support.waiting import until

_SHAPES = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)"), "<time>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<hex>"),
    (re.compile(r"\b(127\.0\.0\.1|localhost):\d+\b"), "<host>"),
)


class Conversation:
    """One scenario with one server: its steps in order, each with what came of it."""

    def __init__(self, client: LangGraphClient, http: httpx.AsyncClient, folder: Path, mark: str) -> None:
        self.client = client
        self.http = http
        self.mark = mark
        """Unique to this conversation: what it creates is found by it."""
        self.steps: dict[str, Any] = {}
        self._folder = folder
        self._names: dict[str, str] = {str(folder): "<folder>", mark: "<mark>"}

    def named(self, value: str, name: str) -> str:
        """Show this id by a name from now on, so that it can be seen whether both servers mean the same one."""
        self._names[value] = f"<{name}>"
        return value

    async def say(self, step: str, asked: Awaitable[Any]) -> Any:
        """Ask, and note the answer or the error's class and status; the answer, or None."""
        try:
            answer = await asked
        except APIStatusError as error:
            self._note(step, {"raised": type(error).__name__, "status": error.status_code})
        except httpx.HTTPStatusError as error:
            self._note(step, {"raised": type(error).__name__, "status": error.response.status_code})
        except Exception as error:  # noqa: BLE001 - whatever comes of it is what is compared
            self._note(step, {"raised": type(error).__name__, "says": str(error)})
        else:
            self._note(step, {"returned": answer})
            return answer
        return None

    async def hear(self, step: str, parts: AsyncIterator[Any], *, enough: Callable[[Any], bool] | None = None) -> Any:
        """Note a stream's events until it ends, or until one of them is enough."""
        events: list[Any] = []
        raised: Any = None
        try:
            async for part in parts:
                events.append(part)
                if enough is not None and enough(part):
                    break
        except APIStatusError as error:
            raised = {"raised": type(error).__name__, "status": error.status_code}
        except Exception as error:  # noqa: BLE001 - the same
            raised = {"raised": type(error).__name__, "says": str(error)}
        shown = [{"event": one.event, "data": one.data} for one in events]
        has_ids = bool(events) and all(one.id is not None for one in events)
        self._note(step, {"events": shown, "ids": has_ids, **(raised or {})})
        return events

    async def request(
        self, step: str, method: str, path: str, *, headers: Sequence[str] = (), body: bool = True, **more: Any
    ) -> httpx.Response:
        """A request that the SDK does not make, or whose headers matter."""
        response = await self.http.request(method, path, **more)
        is_json = response.headers.get("content-type", "").startswith("application/json")
        shown: dict[str, Any] = {
            "status": response.status_code,
            "headers": {name: response.headers.get(name) for name in headers},
        }
        if body and response.is_success:
            shown["body"] = response.json() if is_json and response.content.strip() else response.text
        self._note(step, shown)
        return response

    def note(self, step: str, value: Any) -> None:
        """Something that the scenario found out itself."""
        self._note(step, {"found": value})

    def gate(self, name: str = "gate") -> str:
        """A gate that the graph `slow` waits at."""
        return str(self._folder / name)

    async def arrived(self, gate: str) -> None:
        """Wait until a run stands at the gate."""

        async def stands() -> bool:
            return Path(gate).with_suffix(".started").exists()

        await until(stands)

    def open(self, gate: str) -> None:
        """Let those through that stand at the gate."""
        Path(gate).touch()

    async def thread(self, name: str = "thread", **more: Any) -> str:
        """A new thread, whose creation is not what is compared."""
        created = await self.client.threads.create(**more)
        return self.named(created["thread_id"], name)

    async def settled(self, look: Callable[[], Awaitable[Any]]) -> None:
        """Wait until what was done can be found: an index may lag."""

        async def is_so() -> bool:
            return bool(await look())

        await until(is_so)

    async def ended(self, thread: str, run: str) -> str:
        """Wait until a run has ended; its status."""
        status = "pending"

        async def is_so() -> bool:
            nonlocal status
            status = (await self.client.runs.get(thread, run))["status"]
            return status not in ("pending", "running")

        await until(is_so)
        return status

    def _note(self, step: str, outcome: Any) -> None:
        assert step not in self.steps, f"two steps are called {step!r}"
        self.steps[step] = self._plain(outcome)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            plain: dict[str, Any] = {}
            for key, one in value.items():
                name, count = self._text(str(key)), 2
                while name in plain:
                    name, count = f"{self._text(str(key))}#{count}", count + 1
                # Which packages are installed is not the server's.
                plain[name] = "<versions>" if key == "lc_versions" else self._plain(one)
            return plain
        if isinstance(value, list | tuple):
            return [self._plain(one) for one in value]
        return value

    def _text(self, text: str) -> str:
        for value, name in self._names.items():
            text = text.replace(value, name)
        for shape, name in _SHAPES:
            text = shape.sub(name, text)
        return text
