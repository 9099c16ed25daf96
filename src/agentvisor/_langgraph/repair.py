"""Repair of LangChain messages: every tool call is answered, directly behind the message that makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from agentvisor.core.repair import Answer, Calls, Entry, Kept, Other, repaired

NOT_FINISHED = (
    "Not finished: the run was cancelled or it crashed before this tool's result was stored. The call may or may not "
    "have taken effect; check before you make it again."
)
NOT_MADE = "Not made: the arguments of this call could not be read."

STANDS_IN = "agentvisor_stands_in"
"""Marks a message of ours in `additional_kwargs`, which are stored and which no provider is sent."""


def repair_messages(
    messages: Sequence[BaseMessage],
    *,
    answers: Mapping[str, ToolMessage] | None = None,
    not_finished: str = NOT_FINISHED,
) -> list[BaseMessage]:
    """The messages as every provider accepts them: each tool call answered, directly behind its message.

    A call without an answer, as a cancelled or crashed run leaves it, gets a `ToolMessage` of status "error" that says
    so; answers that are there stay, and move up where something came between. Answers to no call, and second answers
    to one, are left out. Messages that are in order come back as they are, the same objects: repairing twice changes
    nothing.

    Args:
        messages: a conversation, oldest first.
        answers: answers that are known from elsewhere, by call id; used where the conversation has none.
        not_finished: the text for a call that was made, and whose outcome is not known.
    """
    known = answers or {}
    fixed: list[BaseMessage] = []
    for place in repaired([_entry(message) for message in messages]):
        if isinstance(place, Kept):
            fixed.append(messages[place.index])
        else:
            asking = messages[place.index]
            call = list(_calls(asking))[place.call]
            fixed.append(known.get(call.id) or _stand_in(call, asking.id, not_finished))
    return fixed


def unanswered(messages: Sequence[BaseMessage]) -> set[str]:
    """The ids of calls that were made and have no answer."""
    waiting = [place for place in repaired([_entry(message) for message in messages]) if not isinstance(place, Kept)]
    calls = [list(_calls(messages[place.index]))[place.call] for place in waiting]
    return {call.id for call in calls if call.was_made}


class Call:
    """A tool call, as far as an answer to it needs to know."""

    __slots__ = ("id", "name", "was_made")

    def __init__(self, id: str, name: str, *, was_made: bool) -> None:
        self.id = id
        self.name = name
        self.was_made = was_made


def _calls(message: BaseMessage) -> Iterator[Call]:
    if not isinstance(message, AIMessage):
        return
    # Providers are sent the unreadable ones too, and want them answered.
    made = [(call["id"], call["name"], True) for call in message.tool_calls]
    unreadable = [(call["id"], call["name"] or "", False) for call in message.invalid_tool_calls]
    seen: set[str] = set()
    for id_, name, was_made in (*made, *unreadable):
        # Without an id there is nothing that an answer could name.
        if id_ and id_ not in seen:
            seen.add(id_)
            yield Call(id_, name, was_made=was_made)


def _entry(message: BaseMessage) -> Entry:
    if isinstance(message, ToolMessage):
        return Answer(message.tool_call_id, stands_in=STANDS_IN in message.additional_kwargs)
    ids = tuple(call.id for call in _calls(message))
    return Calls(ids) if ids else Other()


def _stand_in(call: Call, asking: str | None, not_finished: str) -> ToolMessage:
    return ToolMessage(
        content=not_finished if call.was_made else NOT_MADE,
        tool_call_id=call.id,
        name=call.name or None,
        status="error",
        # The same each time, so that LangGraph's reducer, which adds by id, adds it once.
        id=f"agentvisor-{asking}-{call.id}" if asking else None,
        additional_kwargs={STANDS_IN: True},
    )
