"""A flow goes on by being started again: methods that had returned return the same once more, and are not called.

So CrewAI itself finds its way: routers, `and_`, `or_` and cycles need nothing of ours. The state is laid in once, as
the method that finished last had left it.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, cast

from crewai import Flow
from crewai.flow.async_feedback.types import HumanFeedbackPending
from pydantic import BaseModel

from agentvisor._crewai.ledger import Ledger, Paused, place
from agentvisor._crewai.shown import Shown
from agentvisor._crewai.values import decode, encode
from agentvisor.protocol.metadata import Json

Method = Callable[..., Any]


class Replay:
    """Of one flow."""

    def __init__(self, flow: Flow[Any], ledger: Ledger, shown: Shown) -> None:
        self._flow = flow
        self._ledger = ledger
        self._shown = shown
        self._lock = threading.Lock()
        self._is_laid_in = False

    def install(self) -> None:
        """Put a recorder in front of each method."""
        methods = self._flow._methods  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (where CrewAI looks them up)
        for name, method in list(methods.items()):
            methods[name] = self._recorder(str(name), method)

    def _recorder(self, name: str, method: Method) -> Method:
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await self._awaited(name, lambda: method(*args, **kwargs))

        def called(*args: Any, **kwargs: Any) -> Any:
            return self._called(name, lambda: method(*args, **kwargs))

        recorded: Any = awaited if inspect.iscoroutinefunction(method) else called
        # CrewAI reads how many arguments it takes.
        recorded.__signature__ = inspect.signature(method)
        recorded.__name__, recorded.__doc__ = name, method.__doc__
        return recorded

    def _called(self, name: str, call: Callable[[], Any]) -> Any:
        at = self._begun(name)
        if at in self._ledger.progress.methods:
            return self._again(at, name)
        token = place.set(f"{at}/")
        try:
            self._shown.method("method_started", name)
            result = call()
        finally:
            place.reset(token)
        if inspect.iscoroutine(result):
            # CrewAI awaits it.
            return self._completed(at, name, result)
        return self._returned(at, name, result)

    async def _awaited(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        at = self._begun(name)
        if at in self._ledger.progress.methods:
            return self._again(at, name)
        self._shown.method("method_started", name)
        return await self._completed(at, name, call())

    async def _completed(self, at: str, name: str, work: Awaitable[Any]) -> Any:
        token = place.set(f"{at}/")
        try:
            result = await work
        finally:
            place.reset(token)
        return await asyncio.to_thread(self._returned, at, name, result)

    def _begun(self, name: str) -> str:
        """The name of this call; the state is what it was before the first of them does anything."""
        with self._lock:
            if not self._is_laid_in and self._ledger.progress.methods:
                _lay_in(self._flow, self._ledger.progress.state)
            self._is_laid_in = True
        return self._ledger.numbered(name)

    def _again(self, at: str, name: str) -> Any:
        self._shown.method("method_restored", name)
        return decode(self._ledger.progress.methods[at])

    def _returned(self, at: str, name: str, result: Any) -> Any:
        if isinstance(result, HumanFeedbackPending):
            # Of a flow that the method has started: its question is asked already.
            raise Paused(str(result))
        state = _state_of(self._flow)
        self._ledger.finish_method(at, encode(result, f"the result of {name}"), state)
        self._shown.method("method_finished", name)
        return result


def _fields(state: object) -> dict[str, Any]:
    return dict(state) if isinstance(state, BaseModel) else cast("dict[str, Any]", state)


def _state_of(flow: Flow[Any]) -> Json:
    for _ in range(10):
        try:
            return encode(dict(_fields(flow._state)), "state")  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        except RuntimeError:
            # A method that runs beside this one has put something in meanwhile.
            continue
    return encode(dict(_fields(flow._state)), "state")  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


def _lay_in(flow: Flow[Any], kept: Json) -> None:
    state: object = flow._state  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    fields = cast("dict[str, Any]", decode(kept))
    if isinstance(state, BaseModel):
        for name, value in fields.items():
            setattr(state, name, value)
        return
    known = cast("dict[str, Any]", state)
    known.clear()
    known.update(fields)
