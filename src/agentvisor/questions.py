"""`agentvisor.interrupt`: a plain agent asks a person, and goes on when there is an answer, in whichever process."""

from __future__ import annotations

from agentvisor.client.connection import connect, own_thread
from agentvisor.client.conversation import Paused, conversation
from agentvisor.client.operations import carry_out
from agentvisor.client.strict_json import dump
from agentvisor.client.tasks import current_task
from agentvisor.core.errors import InvalidInput

__all__ = ["Paused", "interrupt"]


def interrupt(value: object, *, kind: str = "question") -> object:
    """Return the answer to a question; until there is one, the run ends here, paused.

    A new run with the answer (`command: {"resume": answer}`) calls the function again from its start, on the input of
    the first run; the questions that were answered are then answered at once, in their order. So what is done before a
    question is done again: put effects into `agentvisor.once`. In a LangGraph node this is LangGraph's own interrupt.

    Args:
        value: what the person is shown; JSON.
        kind: what sort of question it is, shown beside it.
    """
    data = dump(value, "the question")
    task = current_task()
    if task is not None:
        return task.ask(value)
    asking = conversation()
    if asking is None:
        raise InvalidInput(
            "agentvisor.interrupt works in the run of a plain Python agent, and in LangGraph's nodes and tools"
            + ("; a thread pool's threads do not know theirs: use asyncio.to_thread" if own_thread() else "")
        )
    return carry_out(asking.asked(asking.next_name(), kind, data), connect().transport)
