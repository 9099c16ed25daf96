"""Runs a CrewAI crew or flow as a user's file has it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from crewai import Crew, CrewOutput
from crewai.core.providers.human_input import set_provider
from crewai.flow.async_feedback.types import HumanFeedbackPending
from crewai.llms.base_llm import BaseLLM

from agentvisor import checkpoint
from agentvisor._crewai import feedback, plan
from agentvisor._crewai.beginning import Order, progress_for
from agentvisor._crewai.human_input import ThreadHumanInput
from agentvisor._crewai.ledger import Ledger, Paused
from agentvisor._crewai.locks import keep_locks_in
from agentvisor._crewai.overlay import Overlay
from agentvisor._crewai.persistence import persist_on_thread, set_ledger
from agentvisor._crewai.progress import KEY, from_json
from agentvisor._crewai.replay import Replay, install_inner
from agentvisor._crewai.shown import Shown
from agentvisor.client import waiting
from agentvisor.client.socketpair import Channel
from agentvisor.guest import plain_json
from agentvisor.guest.cancellation import Cancellation
from agentvisor.guest.runners.crewai_agent import AnyFlow, subject_of, with_our_persistence
from agentvisor.guest.runners.crewai_environment import STORAGE
from agentvisor.protocol.metadata import Json
from agentvisor.protocol.v1.guest_pb2 import AgentTask, Outcome, StreamEvent, StreamEvents


def run_crewai(agent: object, task: AgentTask, channel: Channel, cancellation: Cancellation) -> Outcome:
    """Run it on the run's thread: COMPLETED with its output, or PAUSED where a person is asked."""
    feedback.check()
    keep_locks_in(Path(os.environ[STORAGE]))
    subject = subject_of(agent, task.entrypoint)
    progress = progress_for(_order(task, subject), from_json(checkpoint.load(key=KEY)))
    ledger = Ledger(progress, _save, thread_id=task.thread_id)
    if ledger.progress.ended:
        # Only its last word was lost.
        return Outcome(kind=Outcome.KIND_COMPLETED, output=plain_json.encode(ledger.progress.output, "output"))
    shown = Shown(lambda data: _send(channel, data), wanted="custom" in task.spec.stream_modes)
    work = _crew(subject, ledger, shown) if isinstance(subject, Crew) else _flow(subject, ledger, shown, task)
    # Before anything is done: a restarted attempt, or a run without an input, goes on with this one's input.
    ledger.store()
    # The answers are kept: those that brought them are not asked for them again.
    waiting.report(channel, ledger.still_waiting(), takes_input=False)
    shown.listen()
    try:
        result = work.run(cancellation)
    except Paused:
        result = None
    work.overlay.settle()
    if ledger.asked:
        waiting.report(channel, ledger.pause(), takes_input=False)
        return Outcome(kind=Outcome.KIND_PAUSED)
    output = plain_json.encode(_output(result), "output")
    ledger.end(json.loads(output))
    return Outcome(kind=Outcome.KIND_COMPLETED, output=output)


@dataclass(frozen=True)
class _Work:
    run: Callable[[Cancellation], object]
    overlay: Overlay


def _crew(crew: Crew, ledger: Ledger, shown: Shown) -> _Work:
    plan.check(ledger.progress.tasks, plan.plan_of(crew.tasks), crew.tasks)
    overlay = Overlay(ledger, shown, crew)
    _prepare(ledger, overlay, None)
    if crew.stream:
        # Its events say what the models say; the crew itself is to return its output.
        crew.stream = False
        for agent in crew.agents:
            if isinstance(agent.llm, BaseLLM):
                agent.llm.stream = True
    inputs = cast("dict[str, object] | None", ledger.progress.inputs)
    # In the main thread, where a cancelled run interrupts it.
    kickoff = cast("Callable[..., object]", crew.kickoff)  # pyright: ignore[reportUnknownMemberType]
    return _Work(lambda _: kickoff(inputs=None if inputs is None else dict(inputs)), overlay)


def _flow(flow: AnyFlow, ledger: Ledger, shown: Shown, task: AgentTask) -> _Work:
    overlay = Overlay(ledger, shown, None)
    _prepare(ledger, overlay, flow)
    with_our_persistence(flow)
    # CrewAI's own checkpoints hold the keys of models.
    flow.checkpoint = False
    flow.stream = False
    Replay(flow, ledger, shown).install()
    install_inner(flow, ledger, shown)
    given = cast("dict[str, object]", ledger.progress.inputs or {})
    # The id by which @persist finds the state again.
    inputs = {"id": task.thread_id, **given}
    kickoff = cast("Callable[..., Coroutine[object, object, object]]", flow.kickoff_async)  # pyright: ignore[reportUnknownMemberType]
    return _Work(lambda cancellation: cancellation.run(_to_the_last_question(kickoff(inputs=inputs))), overlay)


async def _to_the_last_question(work: Coroutine[object, object, object]) -> object:
    """Run a flow; where one of its methods waits for a person, those beside it go on until they end or ask as well."""
    before = asyncio.all_tasks()
    try:
        result = await work
    except Paused:
        await _ended(asyncio.all_tasks() - before)
        raise
    if isinstance(result, HumanFeedbackPending):
        await _ended(asyncio.all_tasks() - before)
    return result


async def _ended(tasks: set[asyncio.Task[object]]) -> None:
    # What goes wrong in one of them goes wrong again when the flow goes on.
    if tasks:
        await asyncio.wait(tasks)


def _prepare(ledger: Ledger, overlay: Overlay, root: AnyFlow | None) -> None:
    overlay.install()
    feedback.install(ledger, root)
    set_provider(ThreadHumanInput(ledger, overlay.place))
    set_ledger(ledger)
    persist_on_thread()


def _order(task: AgentTask, subject: Crew | AnyFlow) -> Order:
    is_crew = isinstance(subject, Crew)
    return Order(
        run_id=task.run_id,
        kind="crew" if is_crew else "flow",
        name=(subject.name or "crew") if is_crew else type(subject).__qualname__,
        inputs=cast("Json", json.loads(task.spec.input)) if task.spec.input else None,
        answers=waiting.answers_of(task),
        forgets=waiting.abandons(task),
    )


def _output(result: object) -> object:
    """What a crew gave in each of its forms; what a flow gave as it is."""
    if isinstance(result, CrewOutput):
        return {"raw": result.raw, "json_dict": result.json_dict, "pydantic": result.pydantic}
    return result


def _save(state: Json) -> None:
    checkpoint.save(KEY, state)


def _send(channel: Channel, data: bytes) -> None:
    channel.send_events(StreamEvents(events=[StreamEvent(mode="custom", data=data)]))
