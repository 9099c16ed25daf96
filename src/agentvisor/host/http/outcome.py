"""What `wait` and `join` answer: the values that a run ended with, its question, or its error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable

from agentvisor.core.errors import AgentVisorError
from agentvisor.core.ids import ROOT, CheckpointId, ThreadId
from agentvisor.core.runs import Ending, Run
from agentvisor.host.http.json import encode
from agentvisor.host.http.reading import state_at, values_shown
from agentvisor.host.http.services import Services
from agentvisor.host.http.shapes import output_json, run_error
from agentvisor.host.render_typed import Json


async def outcome(services: Services, thread_id: ThreadId, run: Run) -> Json:
    """The answer for a run that has ended."""
    error = run_error(run)
    if error is not None:
        return {"__error__": error}
    return await values_at_end(services, thread_id, run)


async def values_at_end(services: Services, thread_id: ThreadId, run: Run) -> Json:
    """What it came to; where it is paused, with its questions."""
    is_paused = bool(run.attempts) and run.attempts[-1].ending is Ending.PAUSED
    if run.output and not is_paused:
        return output_json(run)
    values, interrupts = await as_it_left(services, thread_id, run)
    if run.output:
        values = output_json(run)
    if not interrupts or (isinstance(values, dict) and "__interrupt__" in values):
        return values
    return {**(values if isinstance(values, dict) else {}), "__interrupt__": interrupts}


async def as_it_left(services: Services, thread_id: ThreadId, run: Run) -> tuple[Json, list[Json]]:
    """The thread's values and questions when the run ended, whatever came after it.

    As they stand now, where it ended under a version that did not note that, or that checkpoint is not kept any more.
    """
    thread = await services.threads.get(thread_id)
    if run.head and run.head != thread.store.heads.get(ROOT):
        state = await state_at(services, thread_id, ROOT, CheckpointId(run.head), subgraphs=False)
        if state["metadata"]:
            asked = state["interrupts"]
            return state["values"], asked if isinstance(asked, list) and run.paused else []
    return await values_shown(services, thread)


def failure(error: AgentVisorError) -> dict[str, Json]:
    """The answer where waiting itself failed after the status was sent."""
    return {"error": type(error).__name__, "message": error.message}


async def keeping_alive(answer: Awaitable[Json], every: float) -> AsyncGenerator[bytes]:
    """A JSON body that may take hours: line breaks, which JSON allows before a value, keep the connection open."""
    waiting = asyncio.ensure_future(answer)
    try:
        while not (await asyncio.wait([waiting], timeout=every))[0]:
            yield b"\n"
        try:
            yield encode(waiting.result())
        except AgentVisorError as error:
            yield encode({"__error__": failure(error)})
    finally:
        waiting.cancel()
