"""Check `encryption`: the keys here read what the threads that are there were written with."""

from __future__ import annotations

from temporalio.client import Client

from agentvisor.core.errors import Corrupt, Sealed
from agentvisor.core.owners import EVERYONE
from agentvisor.host.checks.finding import Finding, failed, ok, warning
from agentvisor.host.codec.client import keyring_of, terms_of
from agentvisor.host.codec.reading import check_readable
from agentvisor.host.config import Config
from agentvisor.host.threads_search import ThreadSearch

NAME = "encryption"
_MOST = 20
"""Threads that are looked at, the newest: a wrong key shows with the first."""


async def check_encryption(config: Config, client: Client) -> Finding:
    """Nothing is written; of each thread its execution's beginning is read."""
    search = ThreadSearch(client, config.temporal.task_queue, EVERYONE, terms_of(config.encryption))
    threads = await search.search(metadata={}, status=None, ids=None, limit=_MOST, offset=0)
    sealed, damaged = list[Sealed](), list[Corrupt]()
    for one in threads:
        try:
            await check_readable(client, one)
        except Sealed as error:
            sealed.append(error)
        except Corrupt as error:
            damaged.append(error)
    if sealed:
        return failed(
            NAME,
            f"{len(sealed)} of the newest {len(threads)} threads cannot be read here: {sealed[0].message}",
            "agentvisor encryption-key used: what needs which key",
            Sealed,
        )
    if damaged:
        seen = f"{len(damaged)} of the newest {len(threads)} threads are damaged: {damaged[0].message}"
        return warning(NAME, seen, "nothing can read them any more: delete them")
    read = f"; the newest {len(threads)} threads can be read" if threads else ""
    return ok(NAME, f"{_described(config)}{read}")


def _described(config: Config) -> str:
    keys = [one.id for one in config.encryption.keys]
    if not keys:
        return "nothing is encrypted: there are no encryption.keys"
    writing = keyring_of(config.encryption).writing
    does = f"key {writing.id} encrypts" if writing is not None else "nothing is encrypted (encryption.encrypts)"
    return f"{does}, {', '.join(keys)} decrypt" if len(keys) > 1 else does
