"""An agent that traces itself, as its user has set that up; it knows nothing of AgentVisor."""

import os
import threading
import time
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from agents.effects import effect

provider = TracerProvider(resource=Resource.create({"service.name": "my-agent"}))
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("my-agent")


def think(given: Any) -> Any:
    with tracer.start_as_current_span("think"):
        attempt = os.environ["AGENTVISOR_ATTEMPT"]
    effect(f"thought {attempt}")
    wanted = Path(os.environ["GATE"] + attempt)
    if isinstance(given, dict) and given.get("waits"):
        while not wanted.exists():
            time.sleep(0.02)
    return {"threads": threading.active_count()}
