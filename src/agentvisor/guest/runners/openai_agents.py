"""Runs an agent of the OpenAI Agents SDK: replies and finished calls are kept, and approvals wait for a person."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from agents.models.interface import Model

from agents import Agent, RunConfig, Runner, RunResult, RunResultStreaming, set_tracing_disabled
from agentvisor import checkpoint
from agentvisor.client import waiting
from agentvisor.client.socketpair import Channel
from agentvisor.core.errors import IncompatibleState, InvalidInput
from agentvisor.guest import chat_input, plain_json
from agentvisor.guest.cancellation import Cancellation
from agentvisor.guest.events import Events
from agentvisor.guest.runners.openai_agents_events import MODES, STREAMED, told
from agentvisor.guest.runners.openai_agents_kept import KEY, Kept, kept_from, stored
from agentvisor.guest.runners.openai_agents_questions import approvals_asked, approved_state, check_approvals
from agentvisor.guest.runners.openai_agents_turn import Hooks, Models, Stopped, Turn, reachable, recorded
from agentvisor.protocol.metadata import Json
from agentvisor.protocol.v1.guest_pb2 import AgentTask, Outcome

MAX_TURNS = 10
"""The SDK's own, where the run's config says nothing."""

AnyAgent = Agent[Any]
Result = RunResult | RunResultStreaming


def run_openai_agents(agent: object, task: AgentTask, channel: Channel, cancellation: Cancellation) -> Outcome:
    """Run the agent on the thread's conversation; COMPLETED, or PAUSED where something of it waits for a person."""
    unknown = [mode for mode in task.spec.stream_modes if mode not in MODES]
    if unknown:
        raise InvalidInput(f"stream mode {unknown[0]!r} is not known: use {', '.join(sorted(MODES))}")
    # Its traces go to OpenAI, with what was said in them. Also those of agents that are tools.
    set_tracing_disabled(disabled=True)
    return cancellation.run(_Run(task, channel).run(agent))


class _Run:
    def __init__(self, task: AgentTask, channel: Channel) -> None:
        self._task = task
        self._channel = channel
        self._events = Events(channel)
        modes = {"messages" if mode == "messages-tuple" else mode for mode in task.spec.stream_modes}
        self._modes = modes
        self._message_mode = "messages" if "messages" in task.spec.stream_modes else "messages-tuple"
        self._answers = set(task.spec.answers)
        """What the run answers, and still waits as far as the host knows."""
        self._telling = asyncio.Lock()
        self._context: Json = json.loads(task.spec.context) if task.spec.context else None
        self._turn = Turn(self._save, lambda: channel.drain_asked)

    async def run(self, agent: object) -> Outcome:
        root = await _made(agent)
        kept = await self._begin()
        if kept.ended:
            await self._closed(kept)
            return Outcome(kind=Outcome.KIND_COMPLETED, output=plain_json.encode(kept.output, "output"))
        if kept.unanswered:
            return await self._paused()
        active = _active(root, kept.agent)
        for one in reachable(root):
            if isinstance(one.model, Model):
                one.model = recorded(one.model, self._turn)
        given: Any = kept.items if kept.state is None else await approved_state(root, kept, self._context)
        try:
            result = await self._result(active, given)
        except Stopped:
            result = None
        finally:
            self._events.flush()
        if self._turn.asked:
            await self._turn.keep(replace(self._turn.kept, waiting=self._turn.asked))
            return await self._paused()
        if result is None:
            return Outcome(kind=Outcome.KIND_DRAINED)
        return await self._ended(result)

    async def _begin(self) -> Kept:
        """Take in what is kept and what the run brings."""
        task, run_id = self._task, self._task.run_id
        kept = kept_from(await checkpoint.aload(key=KEY))
        answers = waiting.answers_of(task)
        given = cast("Json", json.loads(task.spec.input)) if task.spec.input else None
        # Otherwise another attempt: what the run brought is in.
        if kept.run != run_id:
            if answers:
                check_approvals(kept, answers)
                kept = replace(kept, run=run_id, answers={**kept.answers, **answers}, ended=False)
            elif given is not None:
                kept = Kept(run=run_id, agent=kept.agent, items=[*kept.closed(), *_said(given)])
            elif kept.items and not kept.ended:
                goes_on = not waiting.abandons(task)
                kept = replace(kept, run=run_id) if goes_on else Kept(run_id, kept.agent, kept.closed())
            else:
                raise InvalidInput("the run has no input, and the thread nothing to go on with", field="input")
            await self._save(kept)
        self._turn.goes_on(kept)
        if waiting.abandons(task):
            await asyncio.to_thread(waiting.report, self._channel, [], takes_input=False)
        return kept

    async def _result(self, agent: AnyAgent, given: Any) -> Result:
        options: dict[str, Any] = {
            "context": self._context,
            "max_turns": _max_turns(self._task.spec.config),
            "hooks": Hooks(self._turn),
            "run_config": RunConfig(model_provider=Models(self._turn), tracing_disabled=True),
        }
        if not self._modes & STREAMED:
            return await Runner.run(agent, given, **options)
        result = Runner.run_streamed(agent, given, **options)
        try:
            async for event in result.stream_events():
                for mode, data in told(event, self._task.run_id, result.current_agent.name):
                    if mode in self._modes:
                        self._events.send(self._message_mode if mode == "messages" else mode, (), data)
        except BaseException:
            # Its run is a task of its own.
            result.cancel()
            raise
        return result

    async def _ended(self, result: Result) -> Outcome:
        turn = self._turn
        if result.interruptions:
            state = cast("Json", json.loads(plain_json.encode(result.to_state().to_json(), "state")))
            await turn.keep(replace(turn.kept, state=state, waiting=approvals_asked(result.interruptions), answers={}))
            return await self._paused()
        encoded = plain_json.encode(result.final_output, "output")
        items = stored(result.to_input_list(), "conversation")
        kept = Kept(run=self._task.run_id, agent=result.last_agent.name, items=items, ended=True)
        await turn.keep(replace(kept, output=json.loads(encoded)))
        return Outcome(kind=Outcome.KIND_COMPLETED, output=encoded)

    async def _paused(self) -> Outcome:
        await asyncio.to_thread(waiting.report, self._channel, self._turn.kept.questions(), takes_input=False)
        return Outcome(kind=Outcome.KIND_PAUSED)

    async def _save(self, kept: Kept) -> None:
        await checkpoint.asave(KEY, kept.to_json())
        await self._closed(kept)

    async def _closed(self, kept: Kept) -> None:
        """What was waited for and is done: whatever becomes of this run, nobody can answer that again."""
        async with self._telling:  # of calls made together none tells later what was so before
            if self._answers - kept.waiting.keys():
                self._answers &= kept.waiting.keys()
                left = kept.questions(kept.waiting)
                await asyncio.to_thread(waiting.report, self._channel, left, takes_input=False)


async def _made(agent: object) -> AnyAgent:
    if not isinstance(agent, Agent) and callable(agent):
        made: object = agent()
        agent = await made if inspect.isawaitable(made) else made
    if not isinstance(agent, Agent):
        raise InvalidInput(
            f"an agent of the OpenAI Agents SDK is an Agent or a function that makes one, not {type(agent)!r}"
        )
    return cast("AnyAgent", agent)


def _active(root: AnyAgent, name: str) -> AnyAgent:
    """The agent that has the conversation."""
    if not name:
        return root
    found = next((one for one in reachable(root) if one.name == name), None)
    if found is None:
        raise IncompatibleState(
            f"agent {name!r} has this thread's conversation, and no handoff of {root.name!r} leads to such a one: "
            "give it back its name, or start a new thread"
        )
    return found


def _said(given: Json) -> list[Json]:
    """What the user says: a text, a chat's last message, the SDK's own items, or any JSON as its text."""
    match given:
        case str():
            return [{"role": "user", "content": given}]
        case [_, *_] if all(isinstance(one, dict) and ("role" in one or "type" in one) for one in given):
            return given
        case _:
            text = chat_input.said(given)
            return [{"role": "user", "content": json.dumps(given, ensure_ascii=False) if text is None else text}]


def _max_turns(config: bytes) -> int:
    asked: object = json.loads(config) if config else {}
    limit = cast("Mapping[str, object]", asked).get("recursion_limit") if isinstance(asked, dict) else None
    return limit if isinstance(limit, int) else MAX_TURNS
