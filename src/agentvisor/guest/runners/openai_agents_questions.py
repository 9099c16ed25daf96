"""What waits for a person in a run of the OpenAI Agents SDK: calls that need approval, and what tools ask."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from agents.exceptions import AgentsException

from agents import Agent, RunState, ToolApprovalItem
from agentvisor.client.conversation import Paused
from agentvisor.client.tasks import counting_by_counter, find_with
from agentvisor.client.tool_scope import scope
from agentvisor.core.effects import THREAD_SCOPE, Place
from agentvisor.core.errors import IncompatibleState, InvalidInput
from agentvisor.guest.runners.openai_agents_kept import Kept, field_of
from agentvisor.protocol.metadata import Json

AnyState = RunState[Any, Agent[Any]]

# --- approvals -------------------------------------------------------------------------------------------------------


def approvals_asked(items: Sequence[ToolApprovalItem]) -> dict[str, Json]:
    """By the ids of the calls."""
    asked = dict[str, Json]()
    for item in items:
        call, tool = _id_of(item), item.name or ""
        if call in asked:
            raise InvalidInput(
                f"two calls that wait for approval have the same id ({call}), so that one answer would count for both: "
                "the model has to give each call an id of its own"
            )
        asked[call] = {
            "kind": "confirmation",
            "value": {"tool": tool, "args": _arguments(item)},
            "belongs_to": {"tool": tool, "tool_call_id": call, "agent": item.agent.name},
        }
    return asked


def check_approvals(kept: Kept, answers: Mapping[str, Json]) -> None:
    """`InvalidInput` for an answer to a call that waits for approval, and is none."""
    for id_, answer in answers.items():
        if cast("Mapping[str, Json]", kept.waiting.get(id_, {})).get("kind") == "confirmation":
            _decision(id_, answer)


async def approved_state(agent: Agent[Any], kept: Kept, context: Json) -> AnyState:
    """The state that waited, with its answers; `IncompatibleState` where this version of the SDK cannot read it."""
    given = cast("Mapping[str, Any]", context) if isinstance(context, dict) else None
    try:
        state = await RunState.from_json(agent, cast("dict[str, Any]", kept.state), context_override=given)
    except (AgentsException, KeyError, ValueError, TypeError, AttributeError) as error:
        raise IncompatibleState(
            f"this version of the OpenAI Agents SDK, or of the agent, does not go on with the thread's run ({error}): "
            "run it with the former code, or start a new thread"
        ) from error
    for item in state.get_interruptions():
        id_ = _id_of(item)
        if id_ not in kept.answers:
            continue
        approved, why = _decision(id_, kept.answers[id_])
        if approved:
            state.approve(item)
        else:
            state.reject(item, rejection_message=why)
    return state


def _decision(id_: str, answer: Json) -> tuple[bool, str | None]:
    match answer:
        case bool():
            return answer, None
        case {"approved": True, **rest} if not rest:
            return True, None
        case {"approved": False, **rest} if rest.keys() <= {"message"}:
            return False, str(rest["message"]) if rest.get("message") else None
        case _:
            # Also where it says more than is understood: what a person wants changed is not done unchanged.
            raise InvalidInput(
                f'the answer to {id_} is no approval: give true, false, {{"approved": true}} or {{"approved": false, '
                '"message"?: ...}, and nothing else (the SDK approves calls as they are)',
                field="command.resume",
            )


def _id_of(item: ToolApprovalItem) -> str:
    for name in ("call_id", "id"):
        found = field_of(item.raw_item, name)
        if isinstance(found, str) and found:
            return found
    raise InvalidInput(f"a call of {item.name} that waits for approval has no id, so that nobody could answer it")


def _arguments(item: ToolApprovalItem) -> Json:
    given = field_of(item.raw_item, "arguments")
    if not isinstance(given, str):
        return None
    with suppress(ValueError):
        return cast("Json", json.loads(given))
    return given


# --- what tools ask --------------------------------------------------------------------------------------------------


class Asking(Protocol):
    """The model's reply whose calls are under way."""

    @property
    def answers(self) -> Mapping[str, Json]: ...

    def ask(self, id_: str, one: Json) -> None:
        """Let this wait for an answer once the other calls are done."""
        ...


@dataclass
class ToolTask:
    """One call of a tool: `agentvisor.interrupt` and `once` ask by its means."""

    call: str
    tool: str
    agent: str
    asking: Asking
    counter: Callable[[], int] = field(default_factory=lambda: itertools.count().__next__)

    def place(self, key: str) -> Place:
        return Place(scope() or THREAD_SCOPE, key)

    def ask(self, value: object, before_pause: Callable[[str], None] | None = None) -> object:
        return self._ask(self.counter(), value, before_pause)

    def ask_last(self, value: object) -> object:
        return self._ask(len(self.answers()), value, None)

    def _ask(self, number: int, value: object, before_pause: Callable[[str], None] | None) -> object:
        id_ = f"{self.call}:{number}"
        if id_ in self.asking.answers:
            return self.asking.answers[id_]
        belongs_to: Json = {"tool": self.tool, "tool_call_id": self.call, "agent": self.agent}
        self.asking.ask(id_, {"kind": "question", "value": cast("Json", value), "belongs_to": belongs_to})
        if before_pause is not None:
            before_pause(id_)
        raise Paused(f"question {id_} waits for an answer")

    def answers(self) -> list[object]:
        found = self.asking.answers
        numbers = itertools.takewhile(lambda number: f"{self.call}:{number}" in found, itertools.count())
        return [found[f"{self.call}:{number}"] for number in numbers]

    def skip(self) -> None:
        self.counter()

    def keep_answers(self) -> None:
        """They are kept until the model has been told of its calls."""

    def counting(self) -> AbstractContextManager[Callable[[], int]]:
        return counting_by_counter(self)


_task: ContextVar[ToolTask | None] = ContextVar("agentvisor_openai_agents_task", default=None)


def current() -> ToolTask | None:
    """The call of the run's own agents in which code runs; also in the agents that are its tool."""
    return _task.get()


@contextmanager
def inside(task: ToolTask) -> Generator[None]:
    """What runs now is that call."""
    token = _task.set(task)
    try:
        yield
    finally:
        _task.reset(token)


find_with(current)
