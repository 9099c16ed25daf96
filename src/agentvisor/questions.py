"""`agentvisor.interrupt`: an agent asks a person, and goes on when there is an answer, in whichever process."""

from __future__ import annotations

from typing import Literal

from agentvisor.client.connection import connect, own_thread
from agentvisor.client.conversation import Paused, conversation
from agentvisor.client.operations import carry_out
from agentvisor.client.strict_json import dump
from agentvisor.client.tasks import current_task
from agentvisor.client.waiting import note, terms
from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json

__all__ = ["Paused", "interrupt"]


def interrupt(
    value: object,
    *,
    kind: str = "question",
    schema: Json = None,
    deadline: float | None = None,
    on_deadline: Literal["cancel", "answer"] = "cancel",
    default_answer: Json = None,
) -> object:
    """Return the answer to a question; until there is one, the run ends here, paused.

    A new run with the answer (`command: {"resume": answer}`) calls the function again from its start, on the input of
    the first run; the questions that were answered are then answered at once, in their order. So what is done before a
    question is done again: put effects into `agentvisor.once`. In a LangGraph node this is LangGraph's own interrupt.

    Args:
        value: what the person is shown; JSON.
        kind: what sort of question it is, shown beside it.
        schema: a JSON Schema of the answer, shown beside it; answers are not checked against it.
        deadline: how many seconds the question waits; None: for as long as the thread lives. When it is asked again
            by a run that goes on, it does not begin anew.
        on_deadline: what becomes of a question that nobody has answered then. "cancel": it is closed with all that
            waits on the thread, and the run that waits ends with a timeout. "answer": it gets `default_answer`.
        default_answer: the answer that is given then, as if a person had; JSON.
    """
    data, told = dump(value, "the question"), terms(schema, deadline, on_deadline, default_answer)
    task = current_task()
    if task is not None:
        if told is None and kind == "question":
            return task.ask(value)
        return task.ask(value, lambda asked: carry_out(note(asked, kind=kind, terms=told), connect().transport))
    asking = conversation()
    if asking is None:
        raise InvalidInput(
            "agentvisor.interrupt works in the run of a plain Python agent, in LangGraph's nodes and tools, and in the "
            "tools of Strands, ADK and the OpenAI Agents SDK"
            + ("; a thread pool's threads do not know theirs: use asyncio.to_thread" if own_thread() else "")
        )
    return carry_out(asking.asked(asking.next_name(), kind, data, told), connect().transport)
