"""What is taken for the words of a person."""

from __future__ import annotations

import pytest

from agentvisor.core.errors import InvalidInput
from agentvisor.guest.chat_input import said
from agentvisor.protocol.metadata import Json

HELLO: Json = {"type": "text", "text": "hello"}


def chat(content: Json) -> Json:
    return {"messages": [{"role": "user", "content": "before"}, {"role": "user", "content": content}]}


@pytest.mark.parametrize(
    "given, text",
    [
        (chat("hello"), "hello"),
        (chat([HELLO]), "hello"),
        (chat(["hello", HELLO]), "hello\nhello"),
        ({"messages": []}, None),
        ({"question": "hello"}, None),
        (7, None),
    ],
)
def test_the_last_messages_text_is_what_is_said(given: Json, text: str | None) -> None:
    assert said(given) == text


@pytest.mark.parametrize("block", [{"type": "image_url", "image_url": {"url": "data:"}}, {"type": "text"}, 7])
def test_what_is_no_text_is_not_read_to_the_model_as_json(block: Json) -> None:
    with pytest.raises(InvalidInput, match="text"):
        said(chat([HELLO, block]))
