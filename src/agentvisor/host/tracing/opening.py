"""Opens a host's traces as its configuration says: nothing is imported where it says nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from agentvisor import __version__
from agentvisor.host.config_error import ConfigError
from agentvisor.host.config_tree import Config
from agentvisor.host.tracing.run_spans import RunSpans
from agentvisor.host.tracing.spans import NO_TRACING, Tracing
from agentvisor.host.workflow.hearing import ENDS


@asynccontextmanager
async def traces_of(config: Config, host_id: str) -> AsyncGenerator[Tracing]:
    """The host's traces while the context lasts; at its end, what there is of them is sent, for a moment."""
    if not config.telemetry.traces:
        yield NO_TRACING
        return
    try:
        from agentvisor.host.tracing.otel import Otel
    except ImportError as error:
        raise ConfigError(
            f"telemetry.traces needs OpenTelemetry's SDK ({error}): pip install 'agentvisor[otel]', or leave it off",
            key="telemetry.traces",
        ) from error
    tracing = Otel(version=__version__, host_id=host_id, service_name=config.telemetry.service_name)
    try:
        with ENDS.listening(RunSpans(tracing, config.agents, host_id).ended):
            yield tracing
    finally:
        await tracing.close()
