"""The agent's place in its run's trace: whatever its own code records becomes a part of that."""

from __future__ import annotations

import os
from contextlib import suppress

TRACEPARENT = "TRACEPARENT"
TRACESTATE = "TRACESTATE"


def join_trace() -> None:
    """Make the attempt's span the current one, where the run is traced and OpenTelemetry is installed.

    Before the agent's code is loaded: what it sets up, exporters of its own, stays as it is.
    """
    traceparent = os.environ.get(TRACEPARENT)
    if not traceparent:
        return
    # An agent runs without it, too, whatever is wrong with the OpenTelemetry that its project has.
    with suppress(Exception):
        from opentelemetry import context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier = {"traceparent": traceparent, "tracestate": os.environ.get(TRACESTATE, "")}
        context.attach(TraceContextTextMapPropagator().extract(carrier))
