"""What a host tells of itself: traces and logs."""

from typing import Literal

from pydantic import Field

from agentvisor.host.config_section import Section


class TelemetryConfig(Section):
    """OpenTelemetry traces (docs/tracing.md). Where they go, and how much, OpenTelemetry's own variables say."""

    traces: bool = Field(
        default=False,
        description="Send traces over OTLP/HTTP to OTEL_EXPORTER_OTLP_ENDPOINT (http://localhost:4318); sampled as "
        "OTEL_TRACES_SAMPLER says. Needs the extra `otel`.",
    )
    service_name: str | None = Field(
        default=None, description="Name of the service in traces; when not set, OTEL_SERVICE_NAME or agentvisor."
    )


class LogConfig(Section):
    """The host's log on standard error (docs/logs.md)."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="From which level on events are logged; libraries have theirs one level higher."
    )
    format: Literal["auto", "console", "json"] = Field(
        default="auto", description="console is for people, json for programs; auto: console on a terminal, else json."
    )
    contents: bool = Field(
        default=False,
        description="Log texts of errors with what they quote: inputs, values, what an agent raised. Secrets stay out.",
    )
    requests: bool = Field(default=False, description="Log every HTTP request at level info; else at debug.")
