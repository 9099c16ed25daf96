"""`Task(human_input=True)`: the agent's draft is kept and the run pauses; the answer goes on from that draft."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from crewai import Task
from crewai.agents.parser import AgentFinish
from crewai.core.providers.human_input import AsyncExecutorContext, ExecutorContext, SyncHumanInputProvider
from pydantic import BaseModel

from agentvisor._crewai.ledger import Ledger
from agentvisor.client.strict_json import dump
from agentvisor.client.waiting import Waiting
from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json

PROMPT = 'Answer "" to accept the draft; any other text is what the agent is to do better, and brings another draft.'


class _State(Protocol):
    messages: list[Any]
    current_answer: AgentFinish | None


class _Executor(Protocol):
    """CrewAI's executor of one task, as far as a draft is laid into it."""

    state: _State
    task: Task | None


class ThreadHumanInput(SyncHumanInputProvider):
    """CrewAI asks it where it would read a line from the terminal."""

    def __init__(self, ledger: Ledger, place: Callable[[Task | None], str | None]) -> None:
        self._ledger = ledger
        self._place = place

    def setup_messages(self, context: ExecutorContext) -> bool:
        """Lay a kept draft into the executor, in the place of the model's work on the task."""
        executor = cast("_Executor", context)
        at = self._place(executor.task)
        kept = self._ledger.progress.drafts.get(at) if at else None
        if not isinstance(kept, dict) or "messages" not in kept:
            return False
        executor.state.messages.extend(cast("list[Any]", kept["messages"]))
        executor.state.current_answer = _finish(kept, executor.task)
        _pass_over_once(executor)
        return True

    def handle_feedback(self, formatted_answer: AgentFinish, context: ExecutorContext) -> AgentFinish:
        """The draft that a person accepts; raises `Paused` where there is no answer to it yet."""
        answer, number = formatted_answer, self._round(context)
        while feedback := self._ask(answer, context, number):
            context.messages.append(context._format_feedback_message(feedback))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (the protocol's)
            answer, number = context._invoke_loop(), number + 1  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (the same)
        context.ask_for_human_input = False
        return answer

    async def handle_feedback_async(self, formatted_answer: AgentFinish, context: AsyncExecutorContext) -> AgentFinish:
        """The same, where the crew was started with `akickoff`."""
        answer, number = formatted_answer, self._round(context)
        while feedback := self._ask(answer, context, number):
            context.messages.append(context._format_feedback_message(feedback))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (the protocol's)
            answer, number = await context._ainvoke_loop(), number + 1  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (the same)
        context.ask_for_human_input = False
        return answer

    def _round(self, context: ExecutorContext) -> int:
        at = self._place(context.task)
        kept = self._ledger.progress.drafts.get(at) if at else None
        return cast("int", kept["round"]) if isinstance(kept, dict) else 1

    def _ask(self, draft: AgentFinish, context: ExecutorContext, number: int) -> str:
        """What is to be done better; nothing where the draft is accepted."""
        at = self._place(context.task)
        if at is None:
            raise InvalidInput("human_input works in the tasks of a crew")
        self._ledger.keep_draft(at, _kept(draft, context.messages, number))
        task = cast("Task", context.task)
        told: Mapping[str, Json] = {"task": task.name or task.description, "agent": context.agent.role}
        question = Waiting(
            id=self._ledger.question_id(f"{at}:{number}"),
            value={**told, "draft": self._get_output_string(draft), "prompt": PROMPT},
            kind="human_input",
            belongs_to=told,
            schema={"type": "string"},
        )
        answer = self._ledger.answer(question)
        if answer is None or answer is True:
            return ""
        return (answer if isinstance(answer, str) else json.dumps(answer)).strip()


def _kept(draft: AgentFinish, messages: list[Any], number: int) -> Json:
    output = draft.output
    kept: Json = {
        "round": number,
        "thought": draft.thought,
        "text": draft.text,
        "output": cast("Json", output.model_dump(mode="json")) if isinstance(output, BaseModel) else output,
        "messages": cast("Json", [dict(one) for one in messages]),
    }
    try:
        dump(kept, "the draft")
    except InvalidInput:
        # Files in a message: then the agent writes its draft anew when there is an answer.
        return {"round": number}
    return kept


def _finish(kept: Mapping[str, Json], task: Task | None) -> AgentFinish:
    output: Any = kept["output"]
    model = (task.output_pydantic or task.output_json or task.response_model) if task else None
    if model is not None and not isinstance(output, str):
        output = model.model_validate(output)
    return AgentFinish(thought=str(kept["thought"]), output=output, text=cast("Any", kept["text"]))


def _pass_over_once(executor: _Executor) -> None:
    """Let the executor's next start do nothing: what it would come to is there already."""
    own = executor.__dict__

    def kickoff(*_: object, **__: object) -> None:
        del own["kickoff"], own["kickoff_async"]

    async def kickoff_async(*_: object, **__: object) -> None:
        del own["kickoff"], own["kickoff_async"]

    own["kickoff"], own["kickoff_async"] = kickoff, kickoff_async
