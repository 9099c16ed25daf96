"""What a scripted model says: replies by their place in the conversation, so that no process has to remember it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call in a reply."""

    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])


def call(tool: str, /, **arguments: object) -> Call:
    """A tool call of a scripted reply: `call("look_up", order="7")`."""
    return Call(tool, arguments)


Reply = str | Call | Sequence[str | Call]
"""Text, a tool call, or several tool calls at once, with or without text before them."""


class ScriptEnded(Exception):
    """The conversation is longer than the script."""


@dataclass(frozen=True, slots=True)
class Said:
    """One reply, taken apart."""

    text: str
    calls: tuple[tuple[str, Call], ...]
    """By id: the same place of a script gives the same ids, in whatever process; other scripts have others."""


def said_at(script: Sequence[Reply], place: int) -> Said:
    """The reply after `place` replies; `ScriptEnded` where there is none."""
    if place >= len(script):
        raise ScriptEnded(
            f"the script has {len(script)} replies, and the conversation already holds {place} of the model's: "
            "add a reply, or find out why the model was asked once more"
        )
    reply = script[place]
    parts = [reply] if isinstance(reply, str | Call) else list(reply)
    text = "".join(part for part in parts if isinstance(part, str))
    calls = [part for part in parts if isinstance(part, Call)]
    return Said(text, tuple((call_id(script, place, number), one) for number, one in enumerate(calls, 1)))


def call_id(script: Sequence[Reply], place: int, number: int = 1) -> str:
    """The id of a call in the reply after `place` replies.

    Providers' ids are unique. Those of two agents that work together, each with its script, must not be alike either:
    a framework would take the one's call for the other's.
    """
    mark = crc32(repr([*script]).encode())
    return f"call_{place + 1}_{number}_{mark:08x}"


class InvalidHistory(Exception):
    """A provider would refuse this conversation: a tool call is not answered, or an answer is not where it belongs."""
