"""Calls that may block for ever (a disk that does not answer): made where nobody has to wait for their end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def apart(work: Callable[[], Result]) -> Result:
    """What it returns or raises, of a thread that ends with the process: given up, it holds nobody back."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def tell(outcome: Callable[[], None]) -> None:
        def unless_given_up() -> None:
            if not done.done():
                outcome()

        if not loop.is_closed():
            loop.call_soon_threadsafe(unless_given_up)

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            failure = error
            tell(lambda: done.set_exception(failure))
        else:
            tell(lambda: done.set_result(result))

    threading.Thread(target=run, daemon=True, name="apart").start()
    return await done
