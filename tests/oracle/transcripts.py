"""All scenarios, told to both servers at once; what each of them heard."""

from __future__ import annotations

import asyncio
import tempfile
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from langgraph_sdk import get_client
from tests.oracle.scenarios.all_of_them import SCENARIOS
from tests.oracle.speaking import Conversation

_AT_ONCE = 6
_SECONDS = 40.0
Transcripts = dict[str, dict[str, Any]]
"""Scenario to steps to outcomes."""


async def transcripts(url: str, folder: Path, names: Iterable[str] = ()) -> Transcripts:
    """What a server says to every scenario, or to these."""
    heard: Transcripts = {}
    gate = asyncio.Semaphore(_AT_ONCE)

    async def tell(name: str) -> None:
        async with gate:
            heard[name] = await _told(name, url, folder / name)

    async with asyncio.TaskGroup() as all_at_once:
        for name in names or SCENARIOS:
            all_at_once.create_task(tell(name))
    return heard


async def _told(name: str, url: str, folder: Path) -> dict[str, Any]:
    folder.mkdir()
    # A connection each: after an error of its own the LangGraph server closes one, and whoever reuses it meets that.
    alone = {"Connection": "close"}
    async with (
        get_client(url=url, headers=alone) as client,
        httpx.AsyncClient(base_url=url, timeout=30, headers=alone) as http,
    ):
        conversation = Conversation(client, http, folder, f"m{uuid4().hex[:12]}")
        try:
            async with asyncio.timeout(_SECONDS):
                await SCENARIOS[name](conversation)
        except Exception as error:  # noqa: BLE001 - the same
            # Where a server did not give what the scenario goes on with: that is a difference, and not the end.
            conversation.steps["does not end"] = "".join(traceback.format_exception_only(error)).strip()[:300]
        return conversation.steps


async def both(ours: str, theirs: str, names: Iterable[str] = ()) -> tuple[Transcripts, Transcripts]:
    """What our host says, and what the LangGraph server does."""
    with tempfile.TemporaryDirectory() as folder:
        there = [Path(folder, one) for one in ("ours", "theirs")]
        for one in there:
            one.mkdir()
        heard = await asyncio.gather(transcripts(ours, there[0], names), transcripts(theirs, there[1], names))
    return heard[0], heard[1]
