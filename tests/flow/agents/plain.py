"""Plain Python agents."""

import asyncio
import os
import sys
from collections.abc import Iterator
from typing import Any

from agents.effects import effect


def echo(given: Any) -> Any:
    effect("did echo")
    return {"echo": given, "thread": os.environ["AGENTVISOR_THREAD_ID"], "run": os.environ["AGENTVISOR_RUN_ID"]}


def fails(given: Any) -> Any:
    effect("did fails")
    raise ValueError(f"cannot use {given!r}")


def exits(given: Any) -> Any:
    effect("did exits")
    sys.exit(3)


def counts(given: int) -> Iterator[dict[str, int]]:
    for number in range(given):
        yield {"number": number}


async def sleeps(given: float) -> str:
    effect("did sleeps")
    await asyncio.sleep(given)
    return "slept"


def talks(given: Any) -> None:
    print("said on stdout")
    print("said on stderr", file=sys.stderr)
