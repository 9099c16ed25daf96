"""Runs an agent of Pydantic AI: its conversation is kept after every step, and what it defers waits for an answer."""

from __future__ import annotations

import asyncio
import inspect
import json
from dataclasses import replace
from typing import Any, cast

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    repair_messages,
)
from pydantic_ai.run import AgentRun
from pydantic_core import PydanticSerializationError
from pydantic_graph import End

from agentvisor import checkpoint
from agentvisor.client import waiting
from agentvisor.client.socketpair import Channel
from agentvisor.core.errors import InvalidInput
from agentvisor.guest import chat_input, plain_json
from agentvisor.guest.cancellation import Cancellation
from agentvisor.guest.events import Events
from agentvisor.guest.runners.pydantic_ai_kept import KEY, Kept, kept_from
from agentvisor.guest.runners.pydantic_ai_questions import asked, results_of
from agentvisor.protocol.metadata import Json
from agentvisor.protocol.v1.guest_pb2 import AgentTask, Outcome

MODES = {"values", "updates", "messages", "messages-tuple", "custom", "tasks", "checkpoints", "debug"}
"""What a caller may ask for. Of custom, tasks, checkpoints and debug Pydantic AI has nothing to tell."""

AnyAgent = AbstractAgent[Any, Any]
AnyRun = AgentRun[Any, Any]


def run_pydantic_ai(agent: object, task: AgentTask, channel: Channel, cancellation: Cancellation) -> Outcome:
    """Run the agent on the thread's conversation; COMPLETED, or PAUSED where calls of it wait for results."""
    unknown = [mode for mode in task.spec.stream_modes if mode not in MODES]
    if unknown:
        raise InvalidInput(f"stream mode {unknown[0]!r} is not known: use {', '.join(sorted(MODES))}")
    return cancellation.run(_Run(task, channel).run(agent))


class _Run:
    def __init__(self, task: AgentTask, channel: Channel) -> None:
        self._task = task
        self._channel = channel
        self._events = Events(channel)
        self._modes = set(task.spec.stream_modes)
        self._kept = Kept()
        self._asks = bool(task.spec.answers)
        """What the run answers still waits, as far as the host knows."""

    async def run(self, agent: object) -> Outcome:
        made = await _made(agent)
        prompt = await self._begin()
        kept = self._kept
        if kept.ended:
            return Outcome(kind=Outcome.KIND_COMPLETED, output=plain_json.encode(kept.output, "output"))
        if kept.unanswered:
            return await self._paused()
        results = results_of(kept.waiting, kept.answers) if kept.waiting else None
        said = kept.conversation()
        if prompt is not None:
            said = repair_messages(said)  # calls without a result, of a run that failed or was given up, are closed
        stream = made.iter(
            prompt,
            message_history=said,
            deferred_tool_results=results,
            output_type=_with_deferred(made.output_type),
            deps=json.loads(self._task.spec.context) if self._task.spec.context else None,
        )
        try:
            async with stream as run:
                drained = await self._steps(run, made.name or self._task.spec.agent)
        finally:
            self._events.flush()
        if drained:
            return Outcome(kind=Outcome.KIND_DRAINED)
        return await self._ended(run)

    async def _begin(self) -> str | None:
        """Take in what is kept and what the run brings; the text that is new, if any."""
        task, run_id = self._task, self._task.run_id
        kept = self._kept = kept_from(await checkpoint.aload(key=KEY))
        answers = waiting.answers_of(task)
        given = cast("Json", json.loads(task.spec.input)) if task.spec.input else None
        if kept.run == run_id:
            return None  # another attempt: what the run brought is in
        # It is in with the first request that holds it, so that no attempt says it twice.
        prompt = None if given is None else _text_of(given)
        if answers:
            results_of({one: kept.waiting[one] for one in answers if one in kept.waiting}, answers)  # each is one
            kept = replace(kept, run=run_id, answers={**kept.answers, **answers}, ended=False)
        elif given is not None:
            kept = Kept(run=kept.run, messages=kept.messages)
        elif kept.messages and not kept.ended:
            kept = replace(kept, run=run_id)
            if waiting.abandons(task):
                kept = replace(kept, messages=_stored(repair_messages(kept.conversation())), waiting={}, answers={})
        else:
            raise InvalidInput("the run has no input, and the thread nothing to go on with", field="input")
        self._kept = kept
        if given is None:
            await self._save()
        if waiting.abandons(task):
            await asyncio.to_thread(waiting.report, self._channel, [], takes_input=False)
        return prompt

    async def _steps(self, run: AnyRun, name: str) -> bool:
        """Step after step, each behind what came before it; whether it was stopped for the run to go on elsewhere."""
        node = run.next_node
        while not isinstance(node, End):
            if Agent.is_model_request_node(node):
                await self._keep([*run.all_messages(), node.request])
                if self._modes & {"messages", "messages-tuple"}:
                    async with node.stream(run.ctx) as said:
                        async for event in said:
                            self._tell(event, name)
            elif Agent.is_call_tools_node(node):
                await self._keep(run.all_messages())
            if self._channel.drain_asked and not Agent.is_user_prompt_node(node):
                return True
            node = await run.next(node)
        return False

    async def _keep(self, messages: list[ModelMessage]) -> None:
        kept = replace(self._kept, run=self._task.run_id, messages=_stored(messages))
        if isinstance(messages[-1], ModelRequest) and len(kept.messages) > len(self._kept.messages):
            kept = replace(kept, waiting={}, answers={})  # they are in the conversation
        if "updates" in self._modes and kept.messages != self._kept.messages:
            told = {self._task.spec.agent: {"message": kept.messages[-1]}}
            self._events.send("updates", (), json.dumps(told).encode())
        self._kept = kept
        await self._save()

    async def _ended(self, run: AnyRun) -> Outcome:
        if run.result is None:
            raise InvalidInput("the agent has ended without a result")
        output = run.result.output
        if isinstance(output, DeferredToolRequests):
            self._kept = replace(self._kept, messages=_stored(run.all_messages()), waiting=asked(output), answers={})
            await self._save()
            return await self._paused()
        encoded = plain_json.encode(output, "output")
        self._kept = replace(
            self._kept, messages=_stored(run.all_messages()), ended=True, output=json.loads(encoded), waiting={}
        )
        await self._save()
        return Outcome(kind=Outcome.KIND_COMPLETED, output=encoded)

    async def _paused(self) -> Outcome:
        await asyncio.to_thread(waiting.report, self._channel, self._kept.questions(), takes_input=False)
        return Outcome(kind=Outcome.KIND_PAUSED)

    async def _save(self) -> None:
        await checkpoint.asave(KEY, self._kept.to_json())
        if self._asks and not self._kept.waiting:
            # The calls are done: whatever becomes of this run, nobody can answer for them again.
            self._asks = False
            await asyncio.to_thread(waiting.report, self._channel, [], takes_input=False)

    def _tell(self, event: object, name: str) -> None:
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                chunk = {"type": "AIMessageChunk", "id": self._task.run_id, "name": name, "content": text}
                mode = "messages" if "messages" in self._modes else "messages-tuple"
                self._events.send(mode, (), json.dumps([chunk, {"langgraph_node": name}]).encode())
            case _:
                pass


async def _made(agent: object) -> AnyAgent:
    if not isinstance(agent, AbstractAgent) and callable(agent):
        made: object = agent()
        agent = await made if inspect.isawaitable(made) else made
    if not isinstance(agent, AbstractAgent):
        raise InvalidInput(f"an agent of Pydantic AI is an Agent or a function that makes one, not {type(agent)!r}")
    return cast("AnyAgent", agent)


def _with_deferred(output_type: Any) -> Any:
    kinds: list[Any] = list(cast("list[Any]", output_type)) if isinstance(output_type, list | tuple) else [output_type]
    return kinds if DeferredToolRequests in kinds else [*kinds, DeferredToolRequests]


def _text_of(given: Json) -> str:
    """What the user says: a text, a chat's last message, or any JSON as its text."""
    if isinstance(given, str):
        return given
    text = chat_input.said(given)
    return json.dumps(given, ensure_ascii=False) if text is None else text


def _stored(messages: list[ModelMessage]) -> list[Json]:
    try:
        return cast("list[Json]", ModelMessagesTypeAdapter.dump_python(messages, mode="json"))
    except PydanticSerializationError as error:
        raise InvalidInput(
            f"a message of the conversation, a tool's result perhaps, cannot be stored: {error}"
        ) from error
