"""What `agentvisor.once` does in one living process: each function tells what it saw."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, cast

import agentvisor
from agentvisor.core.errors import AgentVisorError


def error_of(work: Callable[[], object]) -> list[str]:
    try:
        return ["returned", repr(work())]
    except AgentVisorError as error:
        return [type(error).__name__, error.message]


class Counting:
    """A function that counts how often it was called."""

    def __init__(self, result: Any) -> None:
        self.result = result
        self.times = 0

    def __call__(self) -> Any:
        self.times += 1
        return self.result() if callable(self.result) else self.result


def twice(result: Any) -> Any:
    fn = Counting(result)
    return [error_of(lambda: agentvisor.once("effect", fn)) for _ in range(2)], fn.times


def results() -> Any:
    found: dict[str, Any] = {}
    given = {"tuple": (1, 2), "set": {1}, "deep": {"rows": [1, {"when": object()}]}, "nan": float("nan"), "key": {1: 2}}
    for name, result in given.items():
        fn = Counting(result)
        found[name] = [error_of(partial(agentvisor.once, name, fn)) for _ in range(2)], fn.times
    fn = Counting("x" * 2_000_000)
    found["large"] = [error_of(partial(agentvisor.once, "large", fn)) for _ in range(2)], fn.times
    return found


def keys() -> Any:
    bad = ["", "x" * 257, 5, None, "\ud800"]
    return [error_of(partial(agentvisor.once, cast("str", key), Counting(1))) for key in bad] + [
        error_of(lambda: agentvisor.once("k", Counting(1), on_unknown=cast("Any", "maybe"))),
        error_of(lambda: agentvisor.once("k", cast("Any", 5))),
        error_of(lambda: agentvisor.once("k" * 256, Counting(1))),
    ]


class AsyncCall:
    async def __call__(self) -> str:
        await asyncio.sleep(0)
        return "called"


async def _answer(text: str) -> str:
    await asyncio.sleep(0)
    return text


async def awaitables() -> Any:
    """Of every kind; each twice."""
    kinds: dict[str, Callable[[], Awaitable[str]]] = {
        "partial": partial(_answer, "partial"),
        "object": AsyncCall(),
        "lambda": lambda: _answer("lambda"),
    }
    return {name: [await agentvisor.once(name, fn) for _ in range(2)] for name, fn in kinds.items()}


async def at_once() -> Any:
    fn = Counting(lambda: _answer("one"))
    tasks = [await one for one in [agentvisor.once("tasks", partial(_run, fn)) for _ in range(5)]]
    gathered = await asyncio.gather(*[_once("gathered", fn) for _ in range(5)])
    slow = Counting(lambda: threading.Event().wait(0.05))
    with ThreadPoolExecutor(4) as pool:
        threads = [pool.submit(agentvisor.once, "threads", slow) for _ in range(4)]
        waited = [one.result() for one in threads]
    return {"tasks": tasks, "gathered": gathered, "times": fn.times, "threads": waited, "slow": slow.times}


async def _run(fn: Counting) -> Any:
    return await fn()


async def _once(key: str, fn: Counting) -> Any:
    return await agentvisor.once(key, partial(_run, fn))


async def would_wait_for_ever() -> Any:
    gate = asyncio.Event()

    async def slow() -> None:
        await gate.wait()

    task = asyncio.ensure_future(agentvisor.once("same", slow))
    await asyncio.sleep(0.05)
    told = [error_of(lambda: agentvisor.once("same", Counting(1)))]
    gate.set()
    await task
    told.append(error_of(lambda: agentvisor.once("outer", lambda: agentvisor.once("outer", Counting(1)))))
    return told


def raises() -> Any:
    """First an error, then a result; and an outcome that its function does not know."""
    results = iter([ValueError("no"), "yes"])

    def fn() -> Any:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    told: list[Any] = []
    try:
        agentvisor.once("fails", fn)
    except ValueError as error:
        told.append(str(error))
    told.append(agentvisor.once("fails", fn))

    def unsure() -> Any:
        raise agentvisor.UnknownOutcome("the bank did not answer in time")

    told.append(error_of(lambda: agentvisor.once("unsure", unsure, on_unknown="fail")))
    told.append(error_of(lambda: agentvisor.once("unsure", Counting(1), on_unknown="fail"))[0])
    told.append(agentvisor.once("unsure", Counting(1), reconcile=lambda: "it did"))
    told.append(agentvisor.once("looks", unsure, reconcile=lambda: "found"))
    told.append(error_of(lambda: agentvisor.once("again", unsure, on_unknown="retry"))[0])
    return told


async def cancelled() -> Any:
    began = asyncio.Event()

    async def slow() -> None:
        began.set()
        await asyncio.sleep(60)

    task = asyncio.ensure_future(agentvisor.once("cancelled", slow))
    await began.wait()
    task.cancel()
    await asyncio.wait([task])
    told: list[Any] = [task.cancelled()]
    try:
        await agentvisor.once("cancelled", slow, on_unknown="fail")
    except agentvisor.UnknownOutcome:
        told.append("unknown")

    # Cancelled while it looks what is there: what it would have found must not be forgotten.
    task = asyncio.ensure_future(agentvisor.once("cancelled", slow))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    told.append(task.cancelled())
    try:
        await agentvisor.once("cancelled", slow, on_unknown="fail")
    except agentvisor.UnknownOutcome:
        told.append("unknown")

    async def look() -> Any:
        await asyncio.sleep(0)
        return agentvisor.NOT_DONE

    told.append(await agentvisor.once("cancelled", partial(_answer, "again"), reconcile=look))
    return told


def names() -> Any:
    key = agentvisor.idempotency_key
    forgotten = Counting(1)
    agentvisor.once("forgotten", forgotten)
    agentvisor.forget_effect("forgotten")
    agentvisor.forget_effect("never known")
    agentvisor.once("forgotten", forgotten)
    return {"keys": [key("a", 1), key("a", 1), key("a", "1"), key("a1"), key()], "forgotten": forgotten.times}
