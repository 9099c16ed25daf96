"""What each part of a host is given of its configuration."""

from __future__ import annotations

import secrets
from datetime import timedelta
from time import time

from agentvisor.core.lifetimes import Lifetime, Strategy
from agentvisor.core.shelf import ShelfSettings
from agentvisor.core.thread import Settings
from agentvisor.host.assistants import AssistantDefaults
from agentvisor.host.config import Config
from agentvisor.host.door import StoreLimits
from agentvisor.host.items import ItemLimits
from agentvisor.host.journal import JournalSettings
from agentvisor.host.peer_credential import PeerCredential, peer_key
from agentvisor.host.peers import address_of
from agentvisor.host.shelves import ShelfDefaults
from agentvisor.host.threads import ThreadDefaults


def seconds(duration: timedelta) -> float:
    return duration.total_seconds()


def milliseconds(duration: timedelta) -> int:
    return int(duration.total_seconds() * 1000)


def journal_settings(config: Config) -> JournalSettings:
    temporal = config.temporal
    return JournalSettings(
        fold_threshold=temporal.fold_threshold,
        fold_quiet=seconds(temporal.fold_quiet),
        fold_age=seconds(temporal.fold_age),
        linger=seconds(temporal.linger),
        idle_heartbeat=seconds(temporal.idle_heartbeat),
    )


def store_limits(config: Config) -> StoreLimits:
    storage = config.storage
    return StoreLimits(
        max_inline_value=storage.max_inline_value,
        max_value=storage.max_value,
        max_state=storage.max_state,
        max_record=storage.max_record,
        max_metadata=storage.max_metadata,
        max_namespaces=storage.max_namespaces,
        max_effects=storage.max_effects,
        max_pending_writes=storage.max_pending_writes,
        max_pending_write_bytes=storage.max_pending_write_bytes,
    )


def thread_defaults(config: Config) -> ThreadDefaults:
    temporal, storage = config.temporal, config.storage
    return ThreadDefaults(
        task_queue=temporal.task_queue,
        pending_writes_enabled=temporal.pending_writes_enabled,
        settings=Settings(
            temporal.compact_events,
            temporal.compact_bytes,
            storage.max_state,
            temporal.max_checkpoint_history,
            temporal.max_run_history,
        ),
        max_input=storage.max_input,
        max_value=storage.max_value,
        lifetime=None
        if temporal.thread_ttl is None
        else Lifetime(milliseconds(temporal.thread_ttl), Strategy[temporal.thread_ttl_strategy.upper()]),
    )


def shelf_defaults(config: Config) -> ShelfDefaults:
    settings = ShelfSettings(max_bytes=config.storage.max_state, erase_after_ms=milliseconds(config.store.erase_after))
    return ShelfDefaults(config.temporal.task_queue, settings, config.store.most_searched)


def assistant_defaults(config: Config) -> AssistantDefaults:
    return AssistantDefaults(tuple(config.agents), int(time() * 1000), config.storage.max_record)


def item_limits(config: Config) -> ItemLimits:
    store = config.store
    return ItemLimits(
        max_item=config.storage.max_inline_value,
        default_ttl_ms=0 if store.default_ttl is None else milliseconds(store.default_ttl),
        refreshes=store.refresh_on_read,
    )


def peer_credential(config: Config) -> PeerCredential:
    """What this host proves itself with to others, and they to it."""
    given, operator = config.http.peer_key, config.http.operator_key
    key = peer_key(
        None if given is None else given.get_secret_value(), None if operator is None else operator.get_secret_value()
    )
    if key is None and config.http.needs_key:
        # Owners reach loopback, too, by a proxy before it: without a secret that hosts share, the door that tells of
        # everybody's runs opens to nobody.
        key = secrets.token_hex(32)
    return PeerCredential(key)


def peer_address(config: Config, temporal: str) -> str:
    """Where other hosts reach this one; `temporal` is the address of the Temporal that they share."""
    http = config.http
    return http.peer_address or address_of(http.host, http.port, temporal)
