"""The fields that a caller wants to see of what is listed."""

from __future__ import annotations

from collections.abc import Sequence

from agentvisor.core.errors import InvalidInput


def selected(select: Sequence[str] | None, fields: Sequence[str], of: str) -> Sequence[str]:
    """Those that were asked for, each once, or all; `InvalidInput` names what there is none of."""
    unknown = sorted(set(select or ()) - set(fields))
    if unknown:
        raise InvalidInput(f"select: {of} have no {', '.join(unknown)[:200]}", field="select")
    return list(dict.fromkeys(select)) if select else fields
