"""What a run's caller gives it, as Strands takes it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import cast

from strands.types.content import ContentBlock
from strands.types.session import decode_bytes_values

from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json

HOW = (
    'give a text, {"messages": [{"role": "user", "content": "..."}]}, {"prompt": ...}, '
    "or a list of Strands' content blocks or messages"
)

_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
"""Of a message by its `role` (Strands) or `type` (LangChain's names, which LangGraph's clients use)."""


def prompt_of(given: Json, *, for_agent: bool) -> str | list[dict[str, object]]:
    """The input; `InvalidInput` names what is not one. A graph or swarm takes content blocks, and no messages."""
    if isinstance(given, str):
        return given
    if isinstance(given, dict):
        return _named(given, for_agent=for_agent)
    if isinstance(given, list) and given:
        blocks = [one for one in given if isinstance(one, dict)]
        if len(blocks) == len(given):
            return _listed(blocks, for_agent=for_agent)
    raise InvalidInput(f"the input of a Strands agent is not {_shown(given)}: {HOW}", field="input")


def _named(given: Mapping[str, Json], *, for_agent: bool) -> str | list[dict[str, object]]:
    names = sorted(given)
    if names == ["prompt"]:
        return prompt_of(given["prompt"], for_agent=for_agent)
    if names == ["messages"] and isinstance(given["messages"], list) and given["messages"]:
        return prompt_of(given["messages"], for_agent=for_agent)
    raise InvalidInput(f"the input of a Strands agent has not the fields {', '.join(names)}: {HOW}", field="input")


def _listed(blocks: list[dict[str, Json]], *, for_agent: bool) -> list[dict[str, object]]:
    if any("interruptResponse" in block for block in blocks):
        raise InvalidInput("answers are not input: give them as command.resume, {id: answer}", field="input")
    if all("content" in block for block in blocks):
        messages = [_message(block) for block in blocks]
        if for_agent:
            return messages
        return [block for message in messages for block in cast("list[dict[str, object]]", message["content"])]
    known = ContentBlock.__annotations__
    for block in blocks:
        if not any(name in known for name in block):
            raise InvalidInput(f"the input has a block with {', '.join(block) or 'nothing'}: {HOW}", field="input")
    return cast("list[dict[str, object]]", decode_bytes_values([_with_bytes(block) for block in blocks]))


def _message(given: Mapping[str, Json]) -> dict[str, object]:
    role = _ROLES.get(str(given.get("role") or given.get("type")))
    if role is None:
        raise InvalidInput(
            f"a message of the input has role {given.get('role')!r}: use user or assistant", field="input"
        )
    content = given["content"]
    if isinstance(content, str):
        return {"role": role, "content": [{"text": content}]}
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise InvalidInput("a message of the input has a content that is neither text nor a list of blocks")
    # LangChain's text blocks have a type beside the text.
    plain = [
        {"text": block["text"]} if cast("Mapping[str, Json]", block).get("type") == "text" else block
        for block in cast("list[dict[str, Json]]", content)
    ]
    return {"role": role, "content": decode_bytes_values([_with_bytes(block) for block in plain])}


def _with_bytes(value: Json) -> object:
    """With the bytes of images and documents, `{"source": {"bytes": BASE64}}`; `InvalidInput` where they are none."""
    if isinstance(value, list):
        return [_with_bytes(one) for one in value]
    if not isinstance(value, dict):
        return value
    made: dict[str, object] = {name: _with_bytes(one) for name, one in value.items()}
    source = value.get("source")
    if isinstance(source, dict) and isinstance(text := source.get("bytes"), str):
        try:
            made["source"] = {**source, "bytes": base64.b64decode(text, validate=True)}
        except ValueError as error:
            raise InvalidInput(f"the bytes of an input's source are not base64: {error}", field="input") from error
    return made


def _shown(given: Json) -> str:
    return "an empty list" if given == [] else f"{str(given)[:60]!r}"
