"""What a person says in a chat, for runners whose framework takes a text."""

from __future__ import annotations

from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json


def said(given: Json) -> str | None:
    """The text of the last message of `{"messages": [...]}`, which may be in blocks; None where it is no chat's input.

    `InvalidInput` for a block of another kind: as JSON it would be read to the model as if it had been said.
    """
    match given:
        case {"messages": [*_, {"content": str() as text}]}:
            return text
        case {"messages": [*_, {"content": [_, *_] as blocks}]}:
            return "\n".join(map(_text_of, blocks))
        case _:
            return None


def _text_of(block: Json) -> str:
    match block:
        case str() | {"type": "text", "text": str()}:
            return block if isinstance(block, str) else str(block["text"])
        case {"type": kind}:
            raise InvalidInput(f"input.messages: of a chat's message text is read, and no {kind!r}", field="input")
        case _:
            raise InvalidInput("input.messages: of a chat's message blocks of text are read", field="input")
