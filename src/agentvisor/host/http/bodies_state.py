"""Bodies of requests that change thread state."""

from __future__ import annotations

from pydantic import Field, JsonValue

from agentvisor.host.http.bodies_threads import Body
from agentvisor.host.http.run_create import JsonObject

_EXPECTED = "The revision that the entry must have; 0: it must not exist. Another one is 409, and nothing is changed."


class StateSet(Body):
    """A value, in the place of what was there."""

    value: JsonValue
    expected_revision: int | None = Field(default=None, ge=0, description=_EXPECTED, strict=True)


class StatePatch(Body):
    """Members of the object that is the value; its others stay."""

    changes: JsonObject
    expected_revision: int | None = Field(default=None, ge=0, description=_EXPECTED, strict=True)


class StateAppend(Body):
    """One more item of the list that is the value."""

    item: JsonValue
    expected_revision: int | None = Field(default=None, ge=0, description=_EXPECTED, strict=True)
