"""What a runner keeps of a conversation under one key of the thread, read again: as it was written, or not at all."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar, cast

from agentvisor.core.errors import IncompatibleState

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Kept = TypeVar("Kept", bound="DataclassInstance")


def kept_from(kind: type[Kept], key: str, form: int, saved: object) -> Kept:
    """What was saved last; an empty one where that is nothing. `IncompatibleState` where it is of another form."""
    if saved is None:
        return kind()
    found = cast("dict[str, object]", saved) if isinstance(saved, dict) else {}
    known = {one.name for one in fields(kind)}
    if found.get("framework") != key or found.get("format") != form or not known <= found.keys():
        raise IncompatibleState(
            f"the save {key!r} of this thread is not what this version of AgentVisor keeps of a conversation: start a "
            "new thread, or save under another key"
        )
    return kind(**{name: found[name] for name in known})
