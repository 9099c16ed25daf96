"""`@human_feedback` and `ask()` of a flow: a question of the thread, in the place of the terminal."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from crewai import Flow
from crewai.flow.async_feedback.types import HumanFeedbackPending, HumanFeedbackProvider, PendingFeedbackContext
from crewai.flow.flow_config import flow_config
from crewai.flow.human_feedback import HumanFeedbackResult

from agentvisor._crewai.ledger import Ledger, Paused, place
from agentvisor._crewai.values import encode
from agentvisor.client.waiting import Waiting
from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json


class ThreadFeedback:
    """CrewAI's provider for feedback. A flow's own may answer at once, or tell people that an answer is waited for."""

    def __init__(self, ledger: Ledger, root: Flow[Any] | None, own: HumanFeedbackProvider | None = None) -> None:
        self._ledger = ledger
        self._root = root
        self._own = own

    def request_feedback(self, context: PendingFeedbackContext, flow: Flow[Any]) -> Any:
        """The answer; raises CrewAI's `HumanFeedbackPending` where there is none yet.

        A flow that another's method or a tool has started would return that to them, who take it for its output: there
        it is `Paused`, and the method or tool is called again when there is an answer.
        """
        at = self._ledger.numbered(f"{place.get()}{context.method_name}:feedback")
        value: dict[str, Json] = {"message": context.message, "output": _shown(context.method_output)}
        if context.emit:
            value["outcomes"] = list(context.emit)
        told: dict[str, Json] = {"flow": type(flow).__name__, "method": context.method_name}
        question = Waiting(self._ledger.question_id(at), value, "human_feedback", told, {"type": "string"})
        if self._own is not None and not self._ledger.knows(question.id):
            with suppress(HumanFeedbackPending):
                return self._own.request_feedback(context, flow)
        try:
            return _text(self._ledger.answer(question))
        except Paused as waits:
            if flow is not self._root:
                raise
            raise HumanFeedbackPending(context=context) from waits


class ThreadInput:
    """CrewAI's provider for `Flow.ask`: the method that asks is called again when there is an answer."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def request_input(self, message: str, flow: Flow[Any], metadata: dict[str, Any] | None = None) -> str:
        """The answer; raises `Paused` where there is none yet."""
        at = self._ledger.numbered(f"{place.get()}ask")
        value: Json = {"message": message, "metadata": _shown(metadata)} if metadata else {"message": message}
        call = place.get().rstrip("/").rpartition("/")[2]
        told: dict[str, Json] = {"flow": type(flow).__name__, "method": call.partition("#")[0]}
        question = Waiting(self._ledger.question_id(at), value, "ask", told, {"type": "string"})
        return _text(self._ledger.answer(question))


def install(ledger: Ledger, root: Flow[Any] | None) -> None:
    """Let CrewAI ask here; and let it take an answer that is an outcome for that outcome, without asking a model.

    `root`: the flow that is the agent; None where that is a crew.
    """
    flow_config.hitl_provider = ThreadFeedback(ledger, root)
    flow_config.input_provider = ThreadInput(ledger)
    flows = cast("Any", Flow)
    resolve, finalize = flows._resolve_feedback_provider, flows._finalize_human_feedback  # noqa: SLF001 (see check)

    def resolved(flow: Flow[Any], definition: Any) -> ThreadFeedback:
        found = resolve(flow, definition)
        return found if isinstance(found, ThreadFeedback) else ThreadFeedback(ledger, root, found)

    async def finalized(
        flow: Flow[Any], *, method_name: str, raw_feedback: str, emit: list[str] | None, **more: Any
    ) -> HumanFeedbackResult:
        at = ledger.numbered(f"{place.get()}{method_name}:outcome")
        known = ledger.progress.outcomes.get(at) or _outcome(raw_feedback, emit or ())
        if known is None:
            result = await finalize(flow, method_name=method_name, raw_feedback=raw_feedback, emit=emit, **more)
            if result.outcome is not None:
                ledger.keep_outcome(at, result.outcome)
            return result
        # Without feedback CrewAI takes the default, and asks no model.
        told = more | {"raw_feedback": "", "default_outcome": known}
        result = await finalize(flow, method_name=method_name, emit=emit, **told)
        result.feedback = raw_feedback
        return result

    flows._resolve_feedback_provider, flows._finalize_human_feedback = resolved, finalized  # noqa: SLF001


def check() -> None:
    """Refuse a CrewAI whose flows take feedback in another way than the one that is replaced here."""
    wanted = {"method_name", "raw_feedback", "emit", "default_outcome"}
    known = set(inspect.signature(cast("Any", Flow)._finalize_human_feedback).parameters)  # noqa: SLF001
    if not wanted <= known:
        raise InvalidInput("this version of CrewAI is not supported: install agentvisor[crewai]")


def _outcome(feedback: str, outcomes: Sequence[str]) -> str | None:
    said = feedback.strip().casefold()
    return next((one for one in outcomes if one.casefold() == said), None)


def _text(answer: Json) -> str:
    if answer is None:
        return ""
    return answer if isinstance(answer, str) else json.dumps(answer)


def _shown(value: object) -> Json:
    """For a person: what JSON has as it is, models by their fields, all else as text."""
    try:
        return _plain(encode(value, "output"))
    except InvalidInput:
        return str(value)


def _plain(kept: Json) -> Json:
    match kept:
        case {"__agentvisor__": _}:
            return _plain(kept["fields"] if "fields" in kept else kept["value"])
        case dict():
            return {key: _plain(item) for key, item in kept.items()}
        case list():
            return [_plain(item) for item in kept]
        case _:
            return cast("Json", kept)
