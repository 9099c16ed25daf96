"""Whether a JSON value contains another, as PostgreSQL's `@>` has it: LangGraph's server searches so."""

from __future__ import annotations

from agentvisor.host.render_typed import Json


def contains(whole: Json, part: Json) -> bool:
    """Objects contain the members that are asked for, lists one item for each; anything else is the same value."""
    match part:
        case dict():
            return isinstance(whole, dict) and all(
                name in whole and contains(whole[name], value) for name, value in part.items()
            )
        case list():
            return isinstance(whole, list) and all(any(contains(one, asked) for one in whole) for asked in part)
        case bool():
            return whole is part
        case _:
            return not isinstance(whole, bool) and whole == part
