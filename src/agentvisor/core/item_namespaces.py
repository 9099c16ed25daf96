"""Namespaces of store items: which there may be, and which of them a search or a list means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentvisor.core.errors import InvalidInput

Labels = tuple[str, ...]
"""A namespace, from its root on."""

ANY = "*"
"""In a pattern: any label."""

MAX_LABELS = 32
MAX_BYTES = 2048
"""Of all labels together: they are shown in Temporal's lists, whose entries are small."""
MAX_KEY = 1024
_RESERVED = "langgraph"


def writable(labels: Iterable[str]) -> Labels:
    """A namespace that an item may be put into; `InvalidInput` says what is wrong with another (LangGraph's rules)."""
    namespace = readable(labels)
    if not namespace:
        raise InvalidInput("the namespace is empty: give at least one label", field="namespace")
    if namespace[0] == _RESERVED:
        raise InvalidInput(f"the namespace's first label cannot be {_RESERVED!r}", field="namespace")
    return namespace


def readable(labels: Iterable[str], field: str = "namespace") -> Labels:
    """A namespace, or the beginning of one; empty is fine."""
    namespace = tuple(labels)
    for label in namespace:
        if not label or "." in label:
            raise InvalidInput(
                f"{field} label {label[:80]!r} is not allowed: a label is not empty and has no periods", field=field
            )
        checked_text(label, f"{field} label", field)
    if len(namespace) > MAX_LABELS:
        raise InvalidInput(f"the {field} has {len(namespace)} labels, and {MAX_LABELS} are the most", field=field)
    size = sum(len(label.encode()) for label in namespace)
    if size > MAX_BYTES:
        raise InvalidInput(f"the {field} has {size} bytes, and {MAX_BYTES} are the most", field=field)
    return namespace


def item_key(key: str) -> str:
    """A key of an item."""
    checked_text(key, "the key", "key")
    if len(key.encode()) > MAX_KEY:
        raise InvalidInput(f"the key has {len(key.encode())} bytes, and {MAX_KEY} are the most", field="key")
    return key


def checked_text(text: str, what: str, field: str) -> None:
    """Half a surrogate pair is a str in Python, and nothing in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} {text[:80]!r} is not valid Unicode text", field=field) from None


def literal_beginning(pattern: Sequence[str]) -> Labels:
    """The labels of a pattern before its first wildcard."""
    return tuple(pattern[: pattern.index(ANY)]) if ANY in pattern else tuple(pattern)


def matches(namespace: Labels, prefix: Sequence[str], suffix: Sequence[str]) -> bool:
    """Whether a namespace begins and ends so."""
    return _agrees(namespace, prefix) and _agrees(namespace[::-1], suffix[::-1])


def _agrees(labels: Sequence[str], pattern: Sequence[str]) -> bool:
    return len(labels) >= len(pattern) and all(
        wanted in (ANY, label) for label, wanted in zip(labels, pattern, strict=False)
    )
