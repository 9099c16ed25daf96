"""Runs a Strands agent, graph or swarm as a user's file has it, or a function without arguments that makes one."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import cast

from strands import Agent

from agentvisor import checkpoint
from agentvisor._strands.asked import Asked
from agentvisor._strands.events import MODES, Shown, to_json
from agentvisor._strands.parts import Subject, agents_of, subject_of, tool_agents
from agentvisor.client import waiting
from agentvisor.client.socketpair import Channel
from agentvisor.core.errors import InvalidInput
from agentvisor.guest import plain_json
from agentvisor.guest.cancellation import Cancellation
from agentvisor.guest.events import Events
from agentvisor.guest.runners.strands_order import Host, Order
from agentvisor.guest.runners.strands_run import Run
from agentvisor.protocol.metadata import Json
from agentvisor.protocol.v1.guest_pb2 import AgentTask, Outcome


def run_strands(agent: object, task: AgentTask, channel: Channel, cancellation: Cancellation) -> Outcome:
    """Run it on the run's thread: COMPLETED with its output, or PAUSED where a question interrupted it."""
    unknown = [mode for mode in task.spec.stream_modes if mode not in MODES]
    if unknown:
        raise InvalidInput(f"stream mode {unknown[0]!r} is not known: use {', '.join(sorted(MODES))}")
    return cancellation.run(_run(agent, task, channel))


async def _run(agent: object, task: AgentTask, channel: Channel) -> Outcome:
    subject = await _subject(agent, task.entrypoint)
    events = Events(channel)
    name = subject.name if isinstance(subject, Agent) else subject.id
    inner = frozenset(tool for one in agents_of(subject) for tool in tool_agents(one, only_kept=False))
    shown = Shown(name, f"{task.run_id}-{task.attempt}", inner)
    modes = {"messages" if mode == "messages-tuple" else mode for mode in task.spec.stream_modes}

    def show(event: Mapping[str, object]) -> None:
        for mode, payload in shown.of(event):
            if mode in modes:
                events.send(mode, (), to_json(payload))

    def report(asked: Sequence[Asked]) -> None:
        told = [waiting.Waiting(id=one.id, value=one.value, belongs_to=one.belongs_to) for one in asked]
        # A new input would lose what the agent was in the middle of.
        waiting.report(channel, told, takes_input=False)

    spec = task.spec
    order = Order(
        run_id=task.run_id,
        input=json.loads(spec.input) if spec.input else None,
        answers=waiting.answers_of(task),
        forgets=waiting.abandons(task),
        invocation=_invocation(spec.context),
    )
    try:
        ended = await Run(
            subject, order, Host(_latest, checkpoint.asave, report, show, lambda: channel.drain_asked)
        ).run()
    finally:
        # Before the last word, whatever it will be.
        events.flush()
    if not (ended.completed or ended.paused):
        return Outcome(kind=Outcome.KIND_DRAINED)
    return Outcome(
        kind=Outcome.KIND_PAUSED if ended.paused else Outcome.KIND_COMPLETED,
        output=plain_json.encode(ended.output, "output"),
    )


async def _latest(key: str) -> Json:
    # The page says checkpoint.load(""), the thread's latest: that would be another state as soon as the agent's own
    # code saves one. So these saves have keys of their own, and the latest of those is loaded.
    return cast("Json", await checkpoint.aload(key=key))


def _invocation(context: bytes) -> dict[str, object]:
    given: object = json.loads(context) if context else None
    return cast("dict[str, object]", given) if isinstance(given, dict) else {}


async def _subject(agent: object, entrypoint: str) -> Subject:
    made = agent
    if inspect.isroutine(made):
        made = cast("Callable[[], object]", made)()
        if inspect.isawaitable(made):
            made = await cast("Awaitable[object]", made)
    subject = subject_of(made)
    if subject is None:
        raise InvalidInput(
            f"{entrypoint} is a {type(made).__qualname__}: a Strands agent is an Agent, a Graph or a Swarm, or a "
            "function without arguments that returns one"
        )
    if getattr(subject, "_checkpointing", False):
        # It would stop after each step with a mark that holds no state, and its run would end there.
        raise InvalidInput(f"{entrypoint} has checkpointing=True: leave it out, AgentVisor saves each step itself")
    return subject
