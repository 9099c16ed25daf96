"""Runs a plain Python agent: `agent(input)` or `agent(input, context)`: a function, coroutine or generator."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import cast

from agentvisor.client.conversation import Conversation, Paused, set_conversation
from agentvisor.client.socketpair import Channel
from agentvisor.client.waiting import has_notes, still_waiting
from agentvisor.core.errors import InvalidInput
from agentvisor.guest import plain_json
from agentvisor.guest.cancellation import Cancellation
from agentvisor.protocol.metadata import Json, metadata_from_struct
from agentvisor.protocol.v1.guest_pb2 import AgentTask, Outcome, StreamEvent, StreamEvents

CONTEXT_NAMES = {"context", "ctx"}


@dataclass(frozen=True)
class AgentContext:
    """What an agent may know of its run; passed as its second argument."""

    thread_id: str
    run_id: str
    attempt: int
    """Counts from 1; above 1 the run was restarted."""
    metadata: dict[str, Json] = field(default_factory=dict[str, Json])
    command: dict[str, object] | None = None
    """The caller's command where the run came with one: {"resume": an answer}."""


def run_function(agent: object, task: AgentTask, channel: Channel, cancellation: Cancellation) -> Outcome:
    """Call the agent; what it yields are events, what it returns is the run's output."""
    if not callable(agent):
        raise InvalidInput(
            f"{task.entrypoint} is a {type(agent).__qualname__}: an agent is a function or a LangGraph graph"
        )
    talk = Conversation(channel, task.run_id)
    set_conversation(talk)
    try:
        output = _call(agent, _begun(agent, task, talk), channel, cancellation)
    except (Paused, Exception, BaseExceptionGroup):
        # A question in a thread of the agent's ends that thread, and what waits for it may raise anything. A task group
        # raises what its tasks have raised in a group, which is no Exception where they have asked.
        if not talk.is_paused:
            raise
        output = None
    except SystemExit as error:
        if error.code is not None and error.code != 0:
            raise
        # A program that ends itself without an error has come to its end, with nothing to give.
        output = None
    if talk.is_paused:
        return Outcome(kind=Outcome.KIND_PAUSED)
    paused = _is_paused(output)
    if paused and has_notes(task):
        # Interrupts of a graph that the agent invoked itself.
        asked = cast("Sequence[object]", cast("dict[str, object]", output)["__interrupt__"])
        still_waiting(channel, (str(getattr(one, "id", one)) for one in asked))
    return Outcome(
        kind=Outcome.KIND_PAUSED if paused else Outcome.KIND_COMPLETED,
        output=plain_json.encode(output, "output"),
    )


def _begun(agent: Callable[..., object], task: AgentTask, talk: Conversation) -> AgentTask:
    """The task with the input that the function runs on: where it goes on, that of the run that began."""
    spec = task.spec
    command: object = json.loads(spec.command) if spec.command else None
    resume = cast("dict[str, object]", command) if isinstance(command, dict) else {}
    if not command and spec.input not in (b"", b"null"):
        return task  # it begins anew
    given = talk.begin(resume.get("resume"), answers="resume" in resume)
    if not given and "resume" in resume and not spec.input and not _takes_context(agent):
        raise InvalidInput(
            "the run brings an answer (command.resume), and no question waits for one", field="command.resume"
        )
    if not given or spec.input not in (b"", b"null"):
        return task
    begun = AgentTask()
    begun.CopyFrom(task)
    begun.spec.input = given
    return begun


def _call(agent: Callable[..., object], task: AgentTask, channel: Channel, cancellation: Cancellation) -> object:
    result = agent(*_arguments(agent, task))
    events = _Events(channel)
    if inspect.isgenerator(result):
        return _drain(cast("Generator[object, None, object]", result), events)
    if inspect.isasyncgen(result):
        return cancellation.run(_adrain(cast("AsyncGenerator[object]", result), events))
    if inspect.isawaitable(result):
        return cancellation.run(_await(result))
    return result


class _Events:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.last: object = None

    def send(self, event: object) -> None:
        self.last = event
        data = plain_json.encode(event, "event")
        self._channel.send_events(StreamEvents(events=[StreamEvent(mode="custom", data=data)]))


async def _await(result: Awaitable[object]) -> object:
    return await result


def _drain(generator: Generator[object, None, object], events: _Events) -> object:
    """Send what it yields; return its return value, or where it has none what it yielded last."""
    while True:
        try:
            event = next(generator)
        except StopIteration as end:
            value = cast("object", end.value)
            return events.last if value is None else value
        events.send(event)


async def _adrain(generator: AsyncGenerator[object], events: _Events) -> object:
    async for event in generator:
        events.send(event)
    return events.last


def _arguments(agent: Callable[..., object], task: AgentTask) -> list[object]:
    spec = task.spec
    arguments: list[object] = [json.loads(spec.input) if spec.input else None]
    if _takes_context(agent):
        command = json.loads(spec.command) if spec.command else None
        metadata = metadata_from_struct(spec.metadata)
        arguments.append(AgentContext(task.thread_id, task.run_id, task.attempt, metadata, command))
    return arguments


def _takes_context(agent: Callable[..., object]) -> bool:
    """Whether it has a second argument that is required, or is called context."""
    try:
        parameters = list(inspect.signature(agent).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [one for one in parameters if one.kind in {one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD}]
    return len(positional) > 1 and (
        positional[1].default is inspect.Parameter.empty or positional[1].name in CONTEXT_NAMES
    )


def _is_paused(output: object) -> bool:
    """A graph that the agent invoked itself, and whose result it returned, stopped at interrupt()."""
    return isinstance(output, dict) and bool(cast("dict[str, object]", output).get("__interrupt__"))
