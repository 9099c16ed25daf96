"""How the core of Temporal's SDK logs: as all other libraries do (logs.py), not on the console by itself."""

from __future__ import annotations

import logging
from contextlib import suppress

from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    MetricBuffer,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)


def set_up_core(metrics: MetricBuffer | None = None) -> bool:
    """Set up the runtime of this process, before its first client is made; whether it was not set up before.

    Args:
        metrics: what its metrics are written into; none: nowhere.
    """
    logger = logging.getLogger("temporalio.core")
    forwarding = LogForwardingConfig(logger, append_target_to_name=False, append_log_fields_to_message=False)
    logs = LoggingConfig(TelemetryFilter(core_level="WARN", other_level="ERROR"), forwarding)
    with suppress(RuntimeError):  # this process has done so, or whoever embeds a host
        Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=logs, metrics=metrics)))
        return True
    return False
