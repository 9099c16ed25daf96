"""An assistant: an agent with a config, a context and metadata of its own, in versions; its moves are pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

Members = Mapping[str, Any]
"""A JSON object."""

UNTITLED = "Untitled"
CONFIGURABLE = "configurable"


@dataclass(frozen=True, slots=True)
class Assistant:
    """One version of an assistant."""

    assistant_id: str
    graph_id: str
    name: str
    description: str | None = None
    config: Members = field(default_factory=dict[str, Any])
    context: Members = field(default_factory=dict[str, Any])
    metadata: Members = field(default_factory=dict[str, Any])
    version: int = 1
    newest: int = 1
    """The highest version that there ever was: numbers are not used again."""
    created_at_ms: int = 0
    updated_at_ms: int = 0
    versioned_at_ms: int = 0
    """When this version was made."""

    def encoded(self) -> bytes:
        """As a shelf holds it."""
        members = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "backslashreplace")


def decoded(data: bytes) -> Assistant:
    """What `encoded` gave; members that a later version has added are passed over."""
    members = cast("dict[str, Any]", json.loads(data))
    return Assistant(**{name: value for name, value in members.items() if name in Assistant.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class Patch:
    """What of an assistant is to be another; None, and an empty object: it stays."""

    graph_id: str | None = None
    config: Members | None = None
    context: Members | None = None
    metadata: Members | None = None
    name: str | None = None
    description: str | None = None


def mirrored(config: Members, context: Members) -> tuple[Members, Members]:
    """Config and context, of which one is given: what one says of the graph's context, the other says too."""
    if context:
        return {**config, CONFIGURABLE: dict(context)}, context
    return config, config.get(CONFIGURABLE) or {}


def next_version(before: Assistant, patch: Patch, now_ms: int) -> Assistant:
    """The assistant after a patch: a new version of it. Metadata is merged; config and context are replaced."""
    config, context = before.config, before.context
    if patch.context:
        config, context = {**config, CONFIGURABLE: dict(patch.context)}, patch.context
    elif patch.config:
        config, context = mirrored(patch.config, {})
    return replace(
        before,
        graph_id=patch.graph_id or before.graph_id,
        config=config,
        context=context,
        metadata={**before.metadata, **(patch.metadata or {})},
        name=patch.name or before.name,
        description=patch.description if patch.description is not None else before.description,
        version=before.newest + 1,
        newest=before.newest + 1,
        updated_at_ms=now_ms,
        versioned_at_ms=now_ms,
    )


def brought_back(before: Assistant, version: Assistant, now_ms: int) -> Assistant:
    """The assistant with an earlier version as its current one; no version is made by that."""
    return replace(version, newest=before.newest, created_at_ms=before.created_at_ms, updated_at_ms=now_ms)


def contains(whole: object, part: object) -> bool:
    """Whether JSON holds what is asked for: objects may hold more, at every depth."""
    if isinstance(part, dict):
        members = cast("Members", part)
        return isinstance(whole, dict) and all(
            key in whole and contains(cast("Members", whole)[key], one) for key, one in members.items()
        )
    return type(whole) is type(part) and whole == part


def merged_config(assistant: Assistant, config: Members | None, context: object) -> tuple[Members | None, object]:
    """The config and context of a run: the run's own above the assistant's, member by member of the configurable.

    What the run says in one of the two of what the assistant has in both, holds in both.
    """
    if not assistant.config and not assistant.context:
        return config, context
    asked = config or {}
    said: Members = asked.get(CONFIGURABLE) or {}
    own: Members = cast("Members", context) if isinstance(context, dict) else {}
    merged = {**assistant.config, **asked}
    configured: Members = assistant.config.get(CONFIGURABLE) or {}
    brought = {key: value for key, value in configured.items() if key not in _OF_THE_RUN}
    if configurable := {**brought, **own, **said}:
        merged[CONFIGURABLE] = configurable
    if context is not None and not isinstance(context, dict):
        return merged, context
    run_own = {key: value for key, value in said.items() if key not in _OF_THE_RUN}
    return merged, {**assistant.context, **run_own, **own} or None


_OF_THE_RUN = frozenset({"thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map", "run_id"})
"""Members of a configurable that address a run, and are no context of a graph."""
