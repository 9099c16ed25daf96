"""One reply of the model after another, and its calls: each is kept, and what was kept is not asked or done again.

The OpenAI Agents SDK stores a conversation after whole turns. So the model's replies are taken where it gives them, and
the results of its calls where the SDK tells its hooks of them; a process that goes on with a reply is given it again in
the model's place, and the results of the calls that are done in the tools' place.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from agents.items import TResponseInputItem
from agents.models.interface import Model, ModelProvider
from agents.models.multi_provider import MultiProvider
from openai import BaseModel
from openai.types.responses import Response, ResponseCompletedEvent

from agents import Agent, ModelResponse, RunContextWrapper, RunHooks, Tool, Usage
from agentvisor.client import tool_scope
from agentvisor.client.conversation import Paused
from agentvisor.core.errors import IncompatibleState
from agentvisor.guest.runners.openai_agents_kept import Kept, result_of, stored
from agentvisor.guest.runners.openai_agents_questions import ToolTask, current, inside
from agentvisor.protocol.metadata import Json

ASKS = "This call waits for the answer of a person."
"""Stands for the result of a call that asks, while the others of the same reply are done; the model never sees it."""


class Stopped(Exception):
    """The run ends before the model is asked again: a tool has asked a person, or the host is leaving."""


class Turn:
    """The present reply of the model: what is kept of it, and what of that is to be given again."""

    def __init__(self, save: Callable[[Kept], Awaitable[None]], is_leaving: Callable[[], bool]) -> None:
        self.kept = Kept()
        self.asked: dict[str, Json] = {}
        """What its tools ask a person, by id."""
        self._save = save
        self._is_leaving = is_leaving
        self._again: list[Json] | None = None

    def goes_on(self, kept: Kept) -> None:
        """Begin with what is kept."""
        self.kept = kept
        # With a state of the SDK the reply is in that.
        self._again = kept.response if kept.state is None else None

    async def keep(self, kept: Kept) -> None:
        self.kept = kept
        await self._save(kept)

    # --- the model ---------------------------------------------------------------------------------------------------

    async def begins(self, agent: str, items: object) -> None:
        """The model is about to be asked with these; raises `Stopped` where it must not be."""
        if self.asked:
            raise Stopped
        if self._again is not None:
            return
        answered = bool(self.kept.answers)
        kept = replace(self.kept, agent=agent, items=stored(items, "conversation"), response=None, results={})
        self.kept = replace(kept, state=None, waiting={}, answers={})
        leaves = self._is_leaving()
        if answered or leaves:
            # With the answers in the conversation nobody answers again, whatever becomes of the model's reply.
            await self._save(self.kept)
        if leaves:
            raise Stopped

    def given_again(self) -> Response | None:
        """The reply that an earlier process had, once; `IncompatibleState` where this SDK cannot read it."""
        again, self._again = self._again, None
        return None if again is None else _response(again)

    async def replied(self, output: Sequence[BaseModel]) -> None:
        """The model's reply, before anything is done about it."""
        # Fields that the model left out stay so: providers refuse some of them where they are null.
        items = [one.model_dump(mode="json", exclude_unset=True) for one in output]
        await self.keep(replace(self.kept, response=stored(items, "reply")))

    # --- its calls ---------------------------------------------------------------------------------------------------

    @property
    def answers(self) -> Mapping[str, Json]:
        return self.kept.answers

    def ask(self, id_: str, one: Json) -> None:
        self.asked[id_] = one

    def asks(self, call: str) -> bool:
        return any(id_.rpartition(":")[0] == call for id_ in self.asked)

    async def done(self, call: str, result: object) -> None:
        if call not in self.kept.results and not self.asks(call):
            results = {**self.kept.results, call: result_of(result)}
            await self.keep(replace(self.kept, results=results, waiting=self.kept.waiting_but_of(call)))


def _response(output: list[Json]) -> Response:
    try:
        return Response.model_validate({
            "id": "", "created_at": 0, "model": "", "object": "response", "output": output,
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        })  # fmt: skip
    except ValueError as error:
        raise IncompatibleState(
            f"this version of the OpenAI Agents SDK does not read the thread's last reply ({error}): start a new thread"
        ) from error


# --- models ----------------------------------------------------------------------------------------------------------


class Models(ModelProvider):
    """Models by their names, as the SDK finds them."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._named = MultiProvider()

    def get_model(self, model_name: str | None) -> Model:
        return recorded(self._named.get_model(model_name), self._turn)

    async def aclose(self) -> None:
        await self._named.aclose()


def recorded(model: Model, turn: Turn) -> Model:
    """The same model, with the same state and of its type, whose replies are kept.

    Not the model itself: that may also be another agent's, in a guardrail or a tool, whose replies are not the run's.
    """
    kind = cast("Any", type(model))

    async def get_response(self: Any, *args: Any, **options: Any) -> ModelResponse:
        if current() is not None:
            # The agent is also a tool, and called as that.
            return cast("ModelResponse", await kind.get_response(self, *args, **options))
        if (again := turn.given_again()) is not None:
            return ModelResponse(output=again.output, usage=Usage(), response_id=None)
        response: ModelResponse = await kind.get_response(self, *args, **options)
        await turn.replied(response.output)
        return response

    async def stream_response(self: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
        if current() is None and (again := turn.given_again()) is not None:
            yield ResponseCompletedEvent(type="response.completed", sequence_number=0, response=again)
            return
        done = list[BaseModel]()
        async for event in kind.stream_response(self, *args, **options):
            if current() is not None:
                yield event
                continue
            if event.type == "response.output_item.done":
                done.append(event.item)
            if isinstance(event, ResponseCompletedEvent):
                # Some models tell the items one by one only.
                await turn.replied(event.response.output or done)
            yield event

    replies = {"get_response": get_response, "stream_response": stream_response}
    same = object.__new__(type(kind.__name__, (kind,), replies))
    same.__dict__ = model.__dict__
    return cast("Model", same)


def reachable(agent: Agent[Any]) -> list[Agent[Any]]:
    """The agent, and those that a handoff can bring the conversation to."""
    found = [agent]
    for one in found:
        for target in map(_target, one.handoffs):
            if target is not None and not any(target is known for known in found):
                found.append(target)
    return found


def _target(handoff: object) -> Agent[Any] | None:
    if isinstance(handoff, Agent):
        return cast("Agent[Any]", handoff)
    # A Handoff names its agent for people only; what it refers to is not shown elsewhere.
    refers: Callable[[], object] | None = getattr(handoff, "_agent_ref", None)
    target = refers() if refers is not None else None
    return cast("Agent[Any]", target) if isinstance(target, Agent) else None


# --- hooks and tools -------------------------------------------------------------------------------------------------


class Hooks(RunHooks[Any]):
    """Tells the turn what the SDK does; beside the agents' own hooks."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    async def on_llm_start(
        self,
        context: RunContextWrapper[Any],  # noqa: ARG002 (the SDK's signature, as below)
        agent: Agent[Any],
        system_prompt: str | None,  # noqa: ARG002
        input_items: list[TResponseInputItem],
    ) -> None:
        await self._turn.begins(agent.name, input_items)

    async def on_tool_start(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool) -> None:  # noqa: ARG002
        invoke = getattr(tool, "on_invoke_tool", None)
        if invoke is not None and not isinstance(invoke, Invoked):
            tool.on_invoke_tool = Invoked(invoke, tool.name, agent.name, self._turn)  # pyright: ignore[reportAttributeAccessIssue]

    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object) -> None:  # noqa: ARG002
        call = getattr(context, "tool_call_id", None)
        if isinstance(call, str) and hasattr(tool, "on_invoke_tool"):
            await self._turn.done(call, result)


class Invoked:
    """A tool's function: called at most once for a call that is done, and knowing which call it is in."""

    def __init__(self, invoke: Callable[..., Awaitable[object]], tool: str, agent: str, turn: Turn) -> None:
        self._invoke = invoke
        self._tool = tool
        self._agent = agent
        self._turn = turn
        # The SDK looks at them for the context that the function wants.
        self.__signature__ = inspect.signature(invoke)
        self.__annotations__ = getattr(invoke, "__annotations__", {})

    def __getattr__(self, name: str) -> object:
        # And at other things of its own.
        return getattr(self._invoke, name)

    async def __call__(self, context: Any, *args: Any) -> object:
        call = str(getattr(context, "tool_call_id", ""))
        if not call or current() is not None:
            # An agent that is a tool begins anew with its call, and its calls with it.
            return await self._invoke(context, *args)
        if call in self._turn.kept.results:
            return self._turn.kept.results[call]
        tool_scope.enter(id(self._turn), call)
        try:
            with inside(ToolTask(call, self._tool, self._agent, self._turn)):
                return await self._invoke(context, *args)
        except Paused:
            # The other calls of the reply come to their end first.
            return ASKS
        finally:
            tool_scope.leave(id(self._turn), call)
