"""Where a shelf is in Temporal: its workflow's id, and the words by which a search finds it."""

from __future__ import annotations

import hashlib
import json

from agentvisor.core.item_namespaces import Labels
from agentvisor.core.shelf import ShelfName

_PREFIX = "agentvisor/shelf/"
"""No thread has a slash in its id: neither is ever taken for the other."""

LABELS = "namespace"
"""Of a shelf's memo: its namespace, as a list reads it."""


def workflow_id(deployment: str, name: ShelfName) -> str:
    """The id of a shelf's workflow: labels may be of any length and alphabet, ids may not."""
    return f"{_PREFIX}{_digest(deployment, name.kind, name.owner, *name.namespace)}"


def keyword(deployment: str, kind: str, owner: str, prefix: Labels) -> str:
    """What all shelves below a prefix have among their keywords."""
    return f"shelf={_digest(deployment, kind, owner, *prefix)}"


def keywords(deployment: str, name: ShelfName) -> list[str]:
    """Of a shelf: one for each prefix of its namespace, the empty one too."""
    labels = name.namespace
    return [keyword(deployment, name.kind, name.owner, labels[:depth]) for depth in range(len(labels) + 1)]


def _digest(*parts: str) -> str:
    # As JSON, which says where one ends and the next begins.
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()[:40]
