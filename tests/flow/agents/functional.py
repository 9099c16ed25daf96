"""LangGraph's functional API: an entrypoint, its tasks, what it remembers of the run before, and a question."""

import asyncio
import os
import signal
from typing import Any

from langgraph.func import entrypoint, task
from langgraph.types import interrupt

from agents import signs
from agents.effects import effect


@task
def draft(topic: str) -> str:
    effect(f"drafted {topic}")
    return f"draft on {topic}"


@task
async def check(text: str) -> str:
    effect(f"checked {text}")
    await asyncio.sleep(0)
    if signs.read("strike") == "in check":
        signs.sign("strike").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return f"checked {text}"


@entrypoint()
async def writes(given: dict[str, Any], *, previous: Any = None) -> Any:
    """Two tasks, one after the other, and a person's word; the next run is told how many there were."""
    text = await draft(given["topic"])
    checked = await check(text)
    word = interrupt({"publish": checked})
    effect(f"published {word}")
    count = (previous or 0) + 1
    return entrypoint.final(value={"text": checked, "word": word, "count": count}, save=count)


@entrypoint()
def fans_out(given: list[str]) -> list[str]:
    futures = [draft(topic) for topic in given]
    return sorted(future.result() for future in futures)


@entrypoint()
def remembers(given: str, *, previous: Any = None) -> list[str]:
    return [*(previous or []), given]
