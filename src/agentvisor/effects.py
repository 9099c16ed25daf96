"""`agentvisor.once`: a side effect is journalled before and after it happens, and never repeated blindly (B5)."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

from agentvisor.client import effect_requests
from agentvisor.client.connection import connect, own_thread
from agentvisor.client.conversation import conversation
from agentvisor.client.effect_requests import checked_key
from agentvisor.client.once import NOT_DONE, NotDone, Once, OnUnknown
from agentvisor.client.operations import Operation, carry_out
from agentvisor.client.steps import acarry_out, is_async
from agentvisor.client.steps import carry_out as carry_out_steps
from agentvisor.client.strict_json import dump
from agentvisor.client.tasks import Task, current_task
from agentvisor.client.tool_scope import scope
from agentvisor.core.effects import THREAD_SCOPE, Place
from agentvisor.core.errors import InvalidInput, UnknownOutcome

__all__ = ["NOT_DONE", "NotDone", "UnknownOutcome", "forget_effect", "idempotency_key", "once"]

T = TypeVar("T")
Reconcile = Callable[[], "T | NotDone | Awaitable[T | NotDone]"]

_POLICIES = ("ask", "retry", "fail")


@overload
def once(
    key: str, fn: Callable[[], Awaitable[T]], *, reconcile: Reconcile[T] | None = None, on_unknown: OnUnknown = "ask"
) -> Awaitable[T]: ...
@overload
def once(
    key: str, fn: Callable[[], T], *, reconcile: Reconcile[T] | None = None, on_unknown: OnUnknown = "ask"
) -> T: ...
def once(
    key: str, fn: Callable[[], object], *, reconcile: Reconcile[object] | None = None, on_unknown: OnUnknown = "ask"
) -> object:
    """Let an effect happen once, whatever dies: return what `fn` returned, now or the first time.

    That `fn` is about to be called is durable before it is called, and its result before it is returned. Where a
    process ended in between, the outcome is *unknown*: then `reconcile` is asked, and where there is none, or it cannot
    tell, `on_unknown` decides. `fn` raising counts as: not happened, so a later call may call it again; unless it
    raises `UnknownOutcome`, or is cancelled.

    Args:
        key: names the effect in its scope: the task of a LangGraph graph, elsewhere the thread. 1 to 256 characters.
        fn: takes no arguments; returns JSON. With a coroutine function, or one that returns something to be awaited,
            `once` returns something to be awaited.
        reconcile: takes no arguments: returns the effect's result if it happened, `NOT_DONE` if it did not; raises
            `UnknownOutcome` if it cannot tell.
        on_unknown: "ask" pauses the run with a question; "retry" calls `fn` again; "fail" raises `UnknownOutcome`.

    Raises `InvalidInput` outside a run, for a key that is none, and for a result that is not JSON (which is done then,
    and stays done); `ValueTooLarge` or `StateTooLarge` where there is no room.
    """
    task = current_task()
    place = _place(checked_key(key), task)
    if on_unknown not in _POLICIES:
        raise InvalidInput(f"on_unknown is {on_unknown!r}: use {', '.join(_POLICIES)}", field="on_unknown")
    if not callable(fn) or not (reconcile is None or callable(reconcile)):
        raise InvalidInput("fn and reconcile are functions without arguments", field="fn")
    transport = connect().transport
    call = Once(place, fn, reconcile, on_unknown, task, conversation())
    if is_async(fn) or (reconcile is not None and is_async(reconcile)):
        return acarry_out(call.steps(), transport)
    result = carry_out_steps(call.steps(), transport)
    return _awaitable(result) if call.awaited else result


def idempotency_key(*parts: str | float | None) -> str:
    """A key for an outside service (Stripe's Idempotency-Key): for the same parts the same in every attempt.

    40 characters. It differs between threads and between tasks.
    """
    place = _place("", current_task())
    named = dump([own_thread(), place.scope, list(parts)], "the parts of an idempotency key")
    return "av-" + hashlib.sha256(named).hexdigest()[:37]


def forget_effect(key: str) -> None:
    """Forget an effect of this scope, whatever became of it: it may happen anew."""
    place = _place(checked_key(key), current_task())
    carry_out(_forget(place), connect().transport)


def _forget(place: Place) -> Operation[None]:
    yield effect_requests.forget(place)


def _place(key: str, task: Task | None) -> Place:
    if own_thread() is None:
        raise InvalidInput(
            "agentvisor.once and agentvisor.idempotency_key work inside a run: in an agent that AgentVisor runs "
            "(`agentvisor dev`), and not in a program that talks to it from outside"
        )
    return task.place(key) if task is not None else Place(scope() or THREAD_SCOPE, key)


async def _awaitable(result: object) -> object:
    return result
