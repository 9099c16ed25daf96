"""Who may call this host, and for whom they act: told by what they show, at every door alike."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from hmac import compare_digest
from time import monotonic

import structlog

from agentvisor.core.owners import EVERYONE, Owner
from agentvisor.host.api_keys import found, hash_of
from agentvisor.host.config_http import HttpConfig
from agentvisor.host.metrics import REFUSED_CALLERS
from agentvisor.host.tokens import Tokens

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.auth")

_LOG_EVERY = 10.0
"""Seconds between two lines on refused callers: whoever tries keys must not fill the disk."""


class Callers:
    """The keys and tokens that count. What was shown is never logged."""

    def __init__(
        self,
        http: HttpConfig,
        *,
        tokens: Tokens | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        operator = http.operator_key
        self.must_show = http.needs_key
        """Whether a caller who shows nothing is refused; else everybody who gets here is the operator."""
        self._operator = None if operator is None else hash_of(operator.get_secret_value()).encode()
        self._keys = http.api_keys
        self._tokens = tokens or (Tokens(http.jwt) if http.jwt.is_set else None)
        self._now = now
        self._clock = clock
        self._refused, self._logged_at = 0, float("-inf")

    async def owner_of(self, shown: str | None, client: str) -> Owner | None:
        """For whom the caller acts who shows this key or token; `EVERYONE` is the operator; None: they are refused.

        `Unavailable` where the keys that tokens are signed with cannot be had. `client` is for the log.
        """
        if not self.must_show:
            return EVERYONE
        if not shown:
            return self._refuse("nothing shown", client)
        if self._operator is not None and compare_digest(hash_of(shown).encode(), self._operator):
            return EVERYONE
        key = found(shown, self._keys, self._now())
        if key is not None:
            return Owner(key.owner)
        if self._tokens is None or shown.count(".") != 2:
            return self._refuse("key", client)
        named = await self._tokens.owner_of(shown)
        return named if named is not None else self._refuse("token", client)

    async def close(self) -> None:
        """End what goes on behind."""
        if self._tokens is not None:
            await self._tokens.close()

    def _refuse(self, reason: str, client: str) -> None:
        REFUSED_CALLERS.labels(reason.replace(" ", "_")).inc()
        self._refused += 1
        now = self._clock()
        if now - self._logged_at >= _LOG_EVERY:
            log.warning("callers_refused", number=self._refused, last=reason, client=client)
            self._refused, self._logged_at = 0, now
