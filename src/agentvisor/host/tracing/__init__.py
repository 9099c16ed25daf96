"""OpenTelemetry traces: from an HTTP request through a run and its attempts to the agent's own spans."""
