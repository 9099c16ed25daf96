"""Where something encrypted belongs: part of what is authenticated, so that nothing passes for a thing of elsewhere."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import cast

from temporalio.converter import ActivitySerializationContext, SerializationContext, WorkflowSerializationContext

from agentvisor.host.codec.refused import Refused

CRON_PREFIX = "agentvisor-cron:"
"""Of the ids of schedules, and of the workflows that they start."""
_FIRED = re.compile(r"-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")
"""What Temporal adds to a schedule's id for the workflow that it starts: what that begins with was encrypted before."""
_LONGEST = 16 * 1024
"""Bytes of a place: Temporal takes no ids of more than 1,000, each of which may be six here."""


@dataclass(frozen=True, slots=True)
class Place:
    """A workflow (a thread, a shelf, a cron with all its firings) of a Temporal namespace."""

    namespace: str
    workflow_id: str

    def encoded(self) -> bytes:
        """The form that is authenticated; no two places have the same."""
        return json.dumps([self.namespace, self.workflow_id], separators=(",", ":")).encode()

    @classmethod
    def decoded(cls, data: bytes) -> Place:
        """What a payload says of itself; `Corrupt` where it is no place."""
        try:
            found: object = json.loads(data) if len(data) <= _LONGEST else None
        except (ValueError, RecursionError):  # whoever writes to Temporal's database may nest as deep as he likes
            found = None
        named = cast("list[object]", found) if isinstance(found, list) else []
        if len(named) != 2 or not all(isinstance(one, str) and _is_text(one) for one in named):
            raise Refused.DAMAGED.corrupt("an encrypted payload does not say where it belongs")
        return cls(str(named[0]), str(named[1]))

    def __str__(self) -> str:
        return f"{self.workflow_id or 'no workflow'} of namespace {self.namespace or '-'}"


def _is_text(found: str) -> bool:
    """Half a surrogate pair is a string of Python's, and neither a log nor an answer can hold it."""
    try:
        found.encode()
    except UnicodeEncodeError:
        return False
    return True


NOWHERE = Place("", "")
"""Of what Temporal's SDK handles without saying for which workflow; it passes for nothing that has a place."""


def place_of(context: SerializationContext | None) -> Place:
    """The place that the SDK names."""
    match context:
        case WorkflowSerializationContext(namespace=namespace, workflow_id=workflow_id):
            return place(namespace, workflow_id)
        case ActivitySerializationContext(namespace=namespace, workflow_id=str(workflow_id)):
            return place(namespace, workflow_id)
        case _:
            return NOWHERE


def place(namespace: str, workflow_id: str) -> Place:
    """The place of a workflow's payloads."""
    if workflow_id.startswith(CRON_PREFIX):
        workflow_id = _FIRED.sub("", workflow_id)
    return Place(namespace, workflow_id)
