"""Check `limits`: what this host lets through is what the server takes."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import DescribeNamespaceResponse

from agentvisor.host.checks.finding import Finding, failed, ok, warning
from agentvisor.host.config import Config, ConfigError
from agentvisor.host.config_tree import StorageConfig

NAME = "limits"
OVERHEAD = 64 * 1024
"""Bytes that a payload needs besides the value that a limit of ours is about: ids, records, encryption."""


def largest(storage: StorageConfig) -> tuple[str, int]:
    """The setting that lets the largest payload through, and its bytes."""
    named = {
        "storage.max_state": storage.max_state,
        "storage.max_inline_value": storage.max_inline_value,
        "storage.max_input": storage.max_input,
        "storage.max_output": storage.max_output,
        "storage.max_pending_write_bytes": storage.max_pending_write_bytes,
    }
    return max(named.items(), key=lambda one: one[1])


def check_limits(config: Config, described: DescribeNamespaceResponse) -> Finding:
    """By what the namespace says; servers before 1.29 say nothing."""
    setting, ours = largest(config.storage)
    limits = described.namespace_info.limits
    # No API tells how long a history may become.
    history = (
        f"a history is begun anew at {config.temporal.compact_events} events and {config.temporal.compact_bytes} "
        "bytes (that the server takes 51,200 and 50 MiB, its defaults, cannot be asked)"
    )
    theirs = limits.blob_size_limit_error
    if not theirs:
        return warning(
            NAME,
            f"this server does not tell its limits; {history}",
            f"see that its limit.blobSize.error is at least {ours + OVERHEAD} bytes; the check `write` tries it",
        )
    if theirs < ours + OVERHEAD:
        return failed(
            NAME,
            f"the server takes payloads of {theirs} bytes, and {setting} lets {ours} through: such a thread would fail",
            f"raise limit.blobSize.error at the server, or set storage.max_* to at most {max(0, theirs - OVERHEAD)}",
            ConfigError,
        )
    return ok(NAME, f"the server takes payloads of {theirs} bytes, ours have at most {ours} ({setting}); {history}")
