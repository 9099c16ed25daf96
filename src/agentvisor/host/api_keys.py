"""Keys that owners show: made at random, known to a host by their hashes alone.

SHA-256 is right for these and would be wrong for passwords: a key is 256 random bits, so that there is nothing to try
but all of them, and a slow hash would only let anybody keep the host busy with wrong keys. A key begins with `av_`, so
that scanners find one that was published by mistake.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

from agentvisor.host.config_auth import ApiKeyConfig

PREFIX = "av_"
_MARK = "sha256:"


def new_key() -> str:
    """A key that nobody has had before."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(key: str) -> str:
    """What a configuration holds of a key."""
    return _MARK + sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def found(shown: str, keys: Sequence[ApiKeyConfig], now: datetime) -> ApiKeyConfig | None:
    """The key that was shown, where it counts. Every one is compared, however early one fits."""
    hashed = hash_of(shown).encode()
    fitting = [one for one in keys if hmac.compare_digest(hashed, one.hash.encode())]
    return next((one for one in fitting if one.counts_at(now)), None)
