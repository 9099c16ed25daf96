"""Delta channels whose value can be told without their agent: LangChain's messages, and a deep agent's files.

Every reducer of messages that is in use does the same: LangGraph's and that of deepagents. A channel is taken for one
of messages, or of files, only where all that it is made of is that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from agentvisor.host.render_typed import Json

_REMOVE_ALL = "__remove_all__"
"""LangGraph's REMOVE_ALL_MESSAGES: the id of a message that removes all before it."""

_OF_A_MESSAGE = frozenset({"type", "content", "id", "additional_kwargs"})
_OF_A_FILE = frozenset({"content", "modified_at"})


def folded(seed: Json, writes: Sequence[Json]) -> Json:
    """The value that a channel has by these writes, the oldest first; None where it is of neither kind."""
    messages = _messages(seed, writes)
    return _files(seed, writes) if messages is None else messages


def _messages(seed: Json, writes: Sequence[Json]) -> Json:
    found: list[Mapping[str, Json]] = []
    for written in (seed if seed is not None else [], *writes):
        for one in written if isinstance(written, list) else [written]:
            if not (isinstance(one, dict) and one.keys() >= _OF_A_MESSAGE):
                return None
            found.append(one)
    if not found:
        return None
    kept: dict[object, Mapping[str, Json]] = {}
    for number, one in enumerate(found):
        id_ = one["id"]
        if one["type"] != "remove":
            # The later one takes the place of the earlier; without an id it stands for itself.
            kept[number if id_ is None else id_] = one
        elif id_ == _REMOVE_ALL:
            kept.clear()
        else:
            kept.pop(id_, None)
    return cast("Json", list(kept.values()))


def _files(seed: Json, writes: Sequence[Json]) -> Json:
    files: dict[str, Json] = {}
    for written in (seed if seed is not None else {}, *writes):
        if not isinstance(written, dict):
            return None
        for path, file in written.items():
            if file is None:
                files.pop(path, None)
            elif isinstance(file, dict) and file.keys() >= _OF_A_FILE:
                files[path] = file
            else:
                return None
    return files if any(writes) or seed else None
