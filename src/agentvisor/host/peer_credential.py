"""How hosts prove to each other that they belong together: each request is signed, and so is its answer.

The key itself never goes over the wire. A signature is good for one host, one question and a minute; that of the answer
proves that who answers has the key, too.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from time import time
from uuid import uuid4

HEADER = "x-agentvisor-peer"
_SECONDS = 60
"""How far two hosts' clocks may be apart."""


class PeerCredential:
    """The key of a deployment's hosts; without one, on loopback, there is nothing to prove."""

    def __init__(self, key: str | None) -> None:
        self._key = key.encode() if key else b""

    def sign(self, host_id: str, target: str) -> str:
        """The header for a question to that host; `target` is its path and query."""
        claim = f"{int(time())}.{uuid4().hex}"
        return f"{claim}.{self._mark('ask', host_id, target, claim)}"

    def accepts(self, header: str, host_id: str, target: str) -> bool:
        """Whether a question to this host was asked by one of its own."""
        claim, _, mark = header.rpartition(".")
        at = claim.partition(".")[0]
        fresh = at.isdecimal() and len(at) < 20 and abs(time() - int(at)) <= _SECONDS
        return fresh and hmac.compare_digest(mark, self._mark("ask", host_id, target, claim))

    def answer(self, header: str, host_id: str) -> str:
        """The header of the answer to that question."""
        return self._mark("answer", host_id, header)

    def _mark(self, *parts: str) -> str:
        return hmac.new(self._key, "\n".join(parts).encode(), sha256).hexdigest()


def peer_key(given: str | None, operator_key: str | None) -> str | None:
    """The key that was set; else one made of the operator's, which all hosts of a deployment have."""
    if given or not operator_key:
        return given
    return hmac.new(operator_key.encode(), b"agentvisor peers", sha256).hexdigest()
