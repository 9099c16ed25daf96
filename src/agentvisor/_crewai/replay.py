"""A flow goes on by being started again: methods that had returned return the same once more, and are not called.

So CrewAI itself finds its way: routers, `and_`, `or_` and cycles need nothing of ours. The state is laid in once, as
the method that finished last had left it.

So does a flow that one of its methods starts. A method that was cut off is called again, and what a person has said of
a draft in there is said of that draft, and of no other that a model would write now.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any, cast

from crewai import Flow
from crewai.flow.async_feedback.types import HumanFeedbackPending
from pydantic import BaseModel

from agentvisor._crewai.ledger import Ledger, Paused, place
from agentvisor._crewai.shown import Shown
from agentvisor._crewai.values import decode, encode
from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json

Method = Callable[..., Any]


STATE = "state"


class Replay:
    """Of one flow."""

    def __init__(self, flow: Flow[Any], ledger: Ledger, shown: Shown, scope: str = "") -> None:
        """`scope`: what the names of its calls begin with; empty for the flow that is the agent."""
        self._flow = flow
        self._ledger = ledger
        self._shown = shown
        self._scope = scope
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
            if not self._is_laid_in and (kept := self._kept_state()) is not None:
                _lay_in(self._flow, kept)
            self._is_laid_in = True
        return self._ledger.numbered(f"{self._scope}{name}")

    def _kept_state(self) -> Json:
        progress = self._ledger.progress
        return progress.methods.get(f"{self._scope}{STATE}") if self._scope else progress.state

    def _again(self, at: str, name: str) -> Any:
        self._shown.method("method_restored", name)
        return decode(self._ledger.progress.methods[at])

    def _returned(self, at: str, name: str, result: Any) -> Any:
        if isinstance(result, HumanFeedbackPending):
            # Of a flow that the method has started: its question is asked already.
            raise Paused(str(result))
        try:
            state, kept = _state_of(self._flow), encode(result, f"the result of {name}")
        except InvalidInput:
            if self._scope:
                # Of the method that has started it, it is called again.
                return result
            raise
        self._ledger.finish_method(at, kept, state, f"{self._scope}{STATE}" if self._scope else None)
        self._shown.method("method_finished", name)
        return result


def install_inner(root: Flow[Any], ledger: Ledger, shown: Shown) -> None:
    """Let a flow that a method of `root` starts, at whatever depth, go on in the same way."""
    flows = cast("Any", Flow)
    kickoff = flows.kickoff_async

    async def begin(flow: Flow[Any], inputs: Any = None, *rest: Any, **named: Any) -> Any:
        if flow is root or flow.stream:
            return await kickoff(flow, inputs, *rest, **named)
        # CrewAI's own checkpoints hold the keys of models.
        flow.checkpoint = False
        above = place.get()
        if not above or _is_in_task(above):
            return await kickoff(flow, inputs, *rest, **named)
        scope = f"{ledger.numbered(f'{above}{_name(flow, inputs)}')}/"
        methods = flow._methods  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (as in Replay)
        own = dict(methods)
        Replay(flow, ledger, shown, scope).install()
        token = place.set(scope)
        try:
            return await kickoff(flow, inputs, *rest, **named)
        finally:
            place.reset(token)
            methods.update(own)

    flows.kickoff_async = begin


def _is_in_task(at: str) -> bool:
    """What an agent's tools start, its model may start in another order the next time."""
    return any(step.isdecimal() for step in at.split("/"))


def _name(flow: Flow[Any], inputs: object) -> str:
    """What it is to do: one that is to do something else is another one, and begins anew."""
    fields = {name: value for name, value in _fields(flow._state).items() if name != "id"}  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    told = json.dumps([inputs, fields], default=str, sort_keys=True)
    return f"{type(flow).__qualname__}:{hashlib.sha256(told.encode()).hexdigest()[:16]}"


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
