"""Adds to a message's piece the same as content blocks: LangChain knows its providers' own parts, the host does not."""

from __future__ import annotations

from typing import cast

from langchain_core.messages import BaseMessage

CONTENT_BLOCKS = "content-blocks"
"""Asked for beside stream modes: "messages" then carry their content blocks, too."""


def with_content_blocks(payload: object) -> object:
    """A "messages" payload with the blocks of its piece; one without such is left as it is."""
    if not isinstance(payload, tuple):
        return payload
    message, metadata = cast("tuple[object, object]", payload)
    if not isinstance(message, BaseMessage):
        return message, metadata
    try:
        blocks = message.content_blocks
    except Exception:  # noqa: BLE001 - a provider's translator fails on what it does not know: the content is there
        return message, metadata
    return {**message.model_dump(), "content_blocks": blocks}, metadata
