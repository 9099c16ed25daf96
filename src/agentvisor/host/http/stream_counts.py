"""How many streams each key holds open on this host: one key cannot take them all."""

from __future__ import annotations

from collections import Counter

from starlette.exceptions import HTTPException

from agentvisor.core.owners import Owner

_RETRY_SECONDS = "1"


class StreamCounts:
    """Counts for every owner; nobody in particular is one, too."""

    def __init__(self) -> None:
        self._open: Counter[Owner] = Counter()

    def enter(self, owner: Owner, most: int) -> None:
        """Count one more, or refuse it with 429."""
        if self._open[owner] >= most:
            text = (
                f"{most} streams are open with this key on this host, and that is the limit (http.max_streams): close "
                "one, or ask again later"
            )
            raise HTTPException(429, text, {"Retry-After": _RETRY_SECONDS})
        self._open[owner] += 1

    def leave(self, owner: Owner) -> None:
        self._open[owner] -= 1
        if not self._open[owner]:
            del self._open[owner]
