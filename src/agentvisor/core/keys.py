"""Names that users give to what they keep: keys of saves and of thread state, and the one rule for them."""

from __future__ import annotations

from agentvisor.core.errors import InvalidInput

MAX_KEY = 256
"""Characters of a key."""


def checked_key(key: object, what: str) -> str:
    """The key; `InvalidInput` where it is not a text of 1 to 256 characters, or has a part . or .. between slashes."""
    if not isinstance(key, str):
        raise InvalidInput(f"{what} is a string, not {type(key).__name__}", field="key")
    if not key:
        raise InvalidInput(f"{what} is empty: it has 1 to {MAX_KEY} characters", field="key")
    return _without_dots(_checked(key, what, "key"), what, "key")


def checked_scope(scope: object) -> str:
    """The name space of a key; `InvalidInput` where it is not a text of up to 256 characters."""
    if not isinstance(scope, str):
        raise InvalidInput(f"scope is a string, not {type(scope).__name__}", field="scope")
    return _without_dots(_checked(scope, "scope", "scope"), "scope", "scope")


def _checked(text: str, what: str, field: str) -> str:
    if len(text) > MAX_KEY:
        raise InvalidInput(f"{what} {text[:40]!r}... has {len(text)} characters, the limit is {MAX_KEY}", field=field)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} {text!r} is not valid Unicode text", field=field) from None
    return text


def _without_dots(text: str, what: str, field: str) -> str:
    if not {".", ".."}.isdisjoint(text.split("/")):
        # Clients of HTTP resolve them before they send: a DELETE of ".." would be one of the thread.
        raise InvalidInput(f"{what} {text[:40]!r} has a part that is . or .., which no URL can name", field=field)
    return text
