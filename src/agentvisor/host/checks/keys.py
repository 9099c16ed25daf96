"""Check `keys`: who may call this host, against where it listens."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from agentvisor.host.checks.finding import Finding, ok, warning
from agentvisor.host.config import Config
from agentvisor.host.config_auth import is_loopback

NAME = "keys"
_SHORT = 20
"""Characters; a key of fewer can be guessed by somebody who has time."""
_SOON = timedelta(days=14)


def check_keys(config: Config, now: datetime | None = None) -> Iterable[Finding]:
    """What is wrong with them; that a host beyond loopback has some, loading the configuration has seen to."""
    now = now or datetime.now(UTC)
    http = config.http
    where = f"listens on {http.host}:{http.port}"
    expired = [one.name for one in http.api_keys if not one.counts_at(now)]
    soon = [one.name for one in http.api_keys if one.counts_at(now) and not one.counts_at(now + _SOON)]
    open_to_others = not is_loopback(http.host)
    key = http.operator_key
    if expired:
        yield warning(NAME, f"expired: {', '.join(expired)}", "take them out of http.api_keys, or make new ones")
    if soon:
        yield warning(
            NAME,
            f"expire within {_SOON.days} days: {', '.join(soon)}",
            "make new ones: agentvisor key new --owner NAME",
        )
    if open_to_others and key is not None and len(key.get_secret_value()) < _SHORT:
        yield warning(
            NAME,
            f"{where}, for other machines too, and http.operator_key has fewer than {_SHORT} characters",
            "use a longer one: openssl rand -hex 32",
        )
    kinds = {
        "http.operator_key": key is not None,
        f"{len(http.api_keys)} of http.api_keys": bool(http.api_keys),
        "tokens (http.jwt)": http.jwt.is_set,
    }
    known = ", ".join(kind for kind, there in kinds.items() if there)
    reach = "for other machines too" if open_to_others else "for this machine only"
    yield ok(NAME, f"{where}, {reach}; callers show {known}" if known else f"{where}, {reach}; no key is needed")
