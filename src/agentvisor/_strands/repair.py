"""Repair of a Strands conversation: every tool use has its result, in the one message behind the message that asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from strands.types.content import ContentBlock, Message
from strands.types.tools import ToolResult

from agentvisor.core.repair import Answer, Calls, Entry, Kept, Other, repaired

NOT_FINISHED = (
    "Not finished: the run was cancelled or it crashed before this tool's result was stored. The call may or may not "
    "have taken effect; check before you make it again."
)
_OF_STRANDS = "Tool was interrupted."
"""What Strands itself answers for a tool that it left without a result: not that it may have taken effect."""


def repair_messages(
    messages: Sequence[Message],
    *,
    results: Mapping[str, ToolResult] | None = None,
    not_finished: str = NOT_FINISHED,
) -> list[Message]:
    """The messages as every provider accepts them: the results of all tool uses, in one message directly behind them.

    A tool use without a result, as a cancelled or crashed run leaves it, gets one of status "error" that says so, also
    where Strands has put "Tool was interrupted."; results that are there stay, and move up where something came
    between. Results of no tool use, and second ones of one, are left out. Messages that are in order come back as they
    are, the same objects: repairing twice changes nothing.

    Args:
        messages: a conversation, oldest first.
        results: results that are known from elsewhere, by tool-use id; used where the conversation has none.
        not_finished: the text for a tool use whose outcome is not known.
    """
    known = results or {}
    parts = [part for number, message in enumerate(messages) for part in _parts(number, message, not_finished)]
    fixed = _Fixed(messages)
    for place in repaired([part.entry for part in parts]):
        if isinstance(place, Kept):
            fixed.add(parts[place.index])
            continue
        asking = parts[place.index].entry
        if isinstance(asking, Calls):
            id_ = asking.ids[place.call]
            fixed.results.append({"toolResult": known.get(id_) or _stand_in(id_, not_finished)})
    fixed.close()
    return fixed.messages


@dataclass(frozen=True, slots=True)
class _Part:
    """One tool result, or all else of a message."""

    entry: Entry
    message: int
    blocks: list[ContentBlock]


def _parts(number: int, message: Message, not_finished: str) -> Iterator[_Part]:
    results, others = _split(message)
    for block, result in results:
        if not _says(result, _OF_STRANDS):
            entry = Answer(result["toolUseId"], stands_in=_says(result, not_finished))
            yield _Part(entry, number, [block])
    ids = tuple(block["toolUse"]["toolUseId"] for block in others if "toolUse" in block)
    # A message without anything is the agent's own affair, and stays.
    if others or not results:
        yield _Part(Calls(ids) if ids else Other(), number, others)


def _split(message: Message) -> tuple[list[tuple[ContentBlock, ToolResult]], list[ContentBlock]]:
    content = message["content"]
    results = [(one, one["toolResult"]) for one in content if "toolResult" in one]
    return results, [one for one in content if "toolResult" not in one]


@dataclass(slots=True)
class _Fixed:
    """The repaired conversation while it is put together."""

    given: Sequence[Message]
    messages: list[Message] = field(default_factory=list[Message])
    results: list[ContentBlock] = field(default_factory=list[ContentBlock])
    """Of the tool uses last seen."""
    _from: int | None = None
    """The message in which the first of them was."""

    def add(self, part: _Part) -> None:
        if isinstance(part.entry, Answer):
            self.results += part.blocks
            self._from = part.message if self._from is None else self._from
            return
        # What a person said together with the results stays with them.
        if self.results and self._from == part.message:
            self._put(part.message, [*self.results, *part.blocks])
            self.results, self._from = [], None
            return
        self.close()
        self._put(part.message, part.blocks)

    def close(self) -> None:
        """The results so far are all there are."""
        if self.results:
            self._put(self._from, self.results)
        self.results, self._from = [], None

    def _put(self, number: int | None, content: list[ContentBlock]) -> None:
        if number is None:
            self.messages.append({"role": "user", "content": content})
        elif self.given[number]["content"] == content:
            self.messages.append(self.given[number])
        else:
            self.messages.append({**self.given[number], "content": content})


def _says(result: ToolResult, text: str) -> bool:
    return result["status"] == "error" and result["content"] == [{"text": text}]


def _stand_in(id_: str, not_finished: str) -> ToolResult:
    return {"toolUseId": id_, "status": "error", "content": [{"text": not_finished}]}
