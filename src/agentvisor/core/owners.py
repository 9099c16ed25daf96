"""Whom a thread belongs to, and who may touch it: the one rule of every door."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import NewType

from agentvisor.core.errors import InvalidInput, NotFound
from agentvisor.core.ids import ThreadId

Owner = NewType("Owner", str)
"""The name of a user, as an operator's configuration or a token says it."""

EVERYONE = Owner("")
"""As a caller: the operator, who may touch what all own. As an owner: nobody, so that only the operator may."""

LONGEST = 512
"""Characters of an owner's name."""

_ALLOWED = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_KEYWORD = 200
"""Characters of a search attribute that every Temporal server keeps and compares whole."""
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789@_.-")


def owner(text: str) -> Owner:
    """Check an owner's name: 1 to 512 characters, none of them a control character; `InvalidInput` otherwise."""
    if len(text) > LONGEST or not _ALLOWED.fullmatch(text):
        raise InvalidInput(
            f"owner {text[:80]!r} is not allowed: use 1 to {LONGEST} characters, none of them a control character",
            field="owner",
        )
    return Owner(text)


def may_touch(caller: Owner, owned_by: str) -> bool:
    """Whether somebody may read and change what belongs to this owner."""
    return caller in (EVERYONE, owned_by)


def check_owner(thread_id: ThreadId, caller: str, owned_by: str) -> None:
    """`NotFound` where the thread is not the caller's: that it exists is not told."""
    if not may_touch(Owner(caller), owned_by):
        raise missing_thread(thread_id)


def missing_thread(thread_id: ThreadId) -> NotFound:
    """What is said of a thread that is not there, and of one that is another owner's."""
    return NotFound(f"thread {thread_id} does not exist", thread_id=thread_id)


def keyword(name: Owner) -> str:
    """An owner in Temporal's visibility: of `a-z0-9@_.-` and `%`, so that no query can be made of it.

    Different owners have different keywords, also where a server's database knows no capitals. A name that would be too
    long is told by its hash, whose mark `%:` no escaped name has.
    """
    text = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in name.encode())
    return text if len(text) <= _KEYWORD else f"%:{sha256(name.encode()).hexdigest()}"
