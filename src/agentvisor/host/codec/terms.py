"""How owners and metadata stand in Temporal's index, which cannot be encrypted: plain, as keyed hashes, or not."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import Literal

from agentvisor.core.errors import InvalidInput

Attribute = Literal["AgentVisorOwner", "AgentVisorMetadata"]

_LONG = 32
"""Hexadecimal digits: the index knows no capitals, and 128 bits do not meet by chance."""


class SearchTerms:
    """Says of every term how it is written, and what a search for it asks. Equal terms are equal when hashed."""

    def __init__(
        self, hashing: bytes | None = None, *, kept: bool = True, also_plain: bool = False, writes_plain: bool = False
    ) -> None:
        """Args:
        hashing: the key of the hashes; none: terms stand there as they are.
        kept: whether there are any.
        also_plain: threads may be there that were written before there were keys: a search finds those too.
        writes_plain: and this host writes such, beside others that write hashes already.
        """
        self._hashing = hashing
        self._kept = kept
        self._also_plain = also_plain
        self._writes_plain = writes_plain

    def written(self, attribute: str, terms: list[str]) -> list[str]:
        """What the index has for these terms."""
        if not self._kept:
            return []
        if self._writes_plain:
            return terms
        return [self._hashed(attribute, one) for one in terms]

    def asked(self, attribute: Attribute, term: str) -> str:
        """The condition of a query; `InvalidInput` where the index does not have it."""
        if not self._kept:
            raise InvalidInput(
                "threads cannot be searched by metadata or owner here: encryption.search is off",
                field="metadata" if attribute == "AgentVisorMetadata" else "owner",
            )
        condition = f"{attribute} = '{self._hashed(attribute, term)}'"
        return f"({condition} OR {attribute} = '{term}')" if self._hashing and self._also_plain else condition

    def _hashed(self, attribute: str, term: str) -> str:
        if self._hashing is None:
            return term
        return hmac.new(self._hashing, f"{attribute}\0{term}".encode(), sha256).hexdigest()[:_LONG]


Written = Callable[[str, list[str]], list[str]]
