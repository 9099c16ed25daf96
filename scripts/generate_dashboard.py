"""Generates deploy/monitoring/grafana-dashboard.json from the rows below, or with --check says whether it is fresh."""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent.parent / "deploy" / "monitoring" / "grafana-dashboard.json"
WIDTH = 24
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
HOSTS = 'instance=~"$instance"'
POLLS = 'worker="runs", kind="workflow"'
EVERY = "[$__rate_interval]"


@dataclass(frozen=True)
class Panel:
    """One panel: queries with their legends."""

    title: str
    queries: dict[str, str]
    """PromQL to legend. `{}` in a selector stands for the hosts that were chosen."""
    unit: str = "short"
    says: str = ""
    kind: str = "timeseries"
    width: int = 8
    red_from: float | None = None
    """Of a number: from here on it is bad."""


def rate(name: str, by: str = "", **labels: str) -> str:
    """How often a second, summed."""
    chosen = ", ".join([*(f'{label}=~"{value}"' for label, value in labels.items()), HOSTS])
    return f"sum{f' by ({by}) ' if by else ' '}(rate({name}{{{chosen}}}{EVERY}))".replace("sum (", "sum(")


def quantile(share: float, name: str, by: str = "") -> str:
    """Of a histogram, over all the hosts that were chosen."""
    kept = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({kept}) (rate({name}_bucket{{{HOSTS}}}{EVERY})))"


def gauge(name: str, by: str = "", *, take: str = "sum") -> str:
    return f"{take}{f' by ({by}) ' if by else ' '}({name}{{{HOSTS}}})".replace(f"{take} (", f"{take}(")


def most(query: str) -> str:
    return f"topk(10, {query})"


def spread(name: str, by: str = "") -> dict[str, str]:
    """The usual and the slow."""
    legend = f"{{{{{by}}}}} " if by else ""
    return {quantile(0.5, name, by): f"{legend}p50", quantile(0.95, name, by): f"{legend}p95"}


def today(name: str, **labels: str) -> str:
    chosen = ", ".join([*(f'{label}=~"{value}"' for label, value in labels.items()), HOSTS])
    return f"sum(increase({name}{{{chosen}}}[$__range]))"


LOST = "guest_gone|guest_unresponsive|could_not_start"

ROWS: dict[str, list[Panel]] = {
    "Health": [
        Panel("Hosts that answer", {f"count(agentvisor_build_info{{{HOSTS}}})": ""}, kind="stat", width=4),
        Panel(
            "Hosts that take tasks",
            {f"count(sum by (instance) (agentvisor_worker_pollers{{{POLLS}, {HOSTS}}}) > 0)": ""},
            kind="stat",
            width=4,
        ),
        Panel(
            "Failed threads",
            {today("agentvisor_failed_threads_total"): ""},
            kind="stat",
            width=4,
            red_from=1,
            says="They take no more runs. In the time that is shown.",
        ),
        Panel(
            "Runs given up",
            {today("agentvisor_given_up_runs_total"): ""},
            kind="stat",
            width=4,
            red_from=1,
            says="Their restarts were used up. In the time that is shown.",
        ),
        Panel(
            "Guests that died",
            {today("agentvisor_ended_guests_total", ending=LOST): ""},
            kind="stat",
            width=4,
            red_from=1,
        ),
        Panel(
            "Writes dropped",
            {today("agentvisor_dropped_writes_total"): ""},
            kind="stat",
            width=4,
            red_from=1,
            says="Tasks that run again if there is a crash in their super-step.",
        ),
        Panel(
            "Threads by status",
            {gauge("agentvisor_threads", "status", take="max"): "{{status}}"},
            says="Of the whole deployment, as Temporal lists them: interrupted ones wait for an answer.",
        ),
        Panel(
            "Room for runs",
            {
                gauge("agentvisor_live_attempts", "instance"): "live on {{instance}}",
                gauge("agentvisor_run_capacity", "instance"): "most on {{instance}}",
            },
        ),
        Panel("Versions", {f"count by (version) (agentvisor_build_info{{{HOSTS}}})": "{{version}}"}),
    ],
    "Runs": [
        Panel("Ends of runs", {rate("agentvisor_runs_total", "outcome"): "{{outcome}}"}, "ops"),
        Panel(
            "Ends of runs by agent",
            {rate("agentvisor_runs_total", "agent, framework"): "{{agent}} ({{framework}})"},
            "ops",
        ),
        Panel(
            "Runs that failed, by agent",
            {rate("agentvisor_runs_total", "agent, outcome", outcome="error|timeout"): "{{agent}} {{outcome}}"},
            "ops",
        ),
        Panel("Time of a run", spread("agentvisor_run_seconds"), "s"),
        Panel("Restarts", {rate("agentvisor_restarts_total", "ending"): "{{ending}}"}, "ops"),
        Panel("Ends of attempts", {rate("agentvisor_ended_attempts_total", "ending"): "{{ending}}"}, "ops"),
        Panel(
            "From asking for an agent's process until it runs", spread("agentvisor_agent_start_seconds", "agent"), "s"
        ),
        Panel("Overdue questions", {rate("agentvisor_interrupts_expired_total", "policy"): "{{policy}}"}, "ops"),
        Panel(
            "Crons and webhooks",
            {
                rate("agentvisor_cron_runs_total", "outcome"): "cron {{outcome}}",
                rate("agentvisor_webhooks_total", "outcome"): "webhook {{outcome}}",
            },
            "ops",
        ),
    ],
    "Journal": [
        Panel("A commit", spread("agentvisor_commit_seconds"), "s"),
        Panel("What a writer waits", spread("agentvisor_write_seconds"), "s"),
        Panel("Operations a commit", spread("agentvisor_commit_operations")),
        Panel("Heartbeats", {rate("agentvisor_heartbeats_total", "outcome"): "{{outcome}}"}, "ops"),
        Panel("Folds", {rate("agentvisor_folds_total", "outcome"): "{{outcome}}"}, "ops"),
        Panel(
            "Sizes of logs and folds",
            {
                quantile(0.95, "agentvisor_log_bytes"): "log p95",
                quantile(0.95, "agentvisor_fold_bytes"): "fold p95",
            },
            "bytes",
        ),
    ],
    "Threads' state": [
        Panel("Share of the limit", spread("agentvisor_state_share"), "percentunit"),
        Panel(
            "State that cannot be left out, and state that was taken along",
            {
                quantile(0.95, "agentvisor_state_bytes"): "of threads p95",
                quantile(0.95, "agentvisor_compacted_bytes"): "of compactions p95",
            },
            "bytes",
        ),
        Panel("Compactions", {rate("agentvisor_compactions_total", "guest"): "{{guest}}"}, "ops"),
        Panel("What compactions left out", {rate("agentvisor_shed_total", "step"): "{{step}}"}, "short", width=12),
        Panel(
            "Limits that were met",
            {
                rate("agentvisor_threads_near_limit_total"): "near the limit",
                rate("agentvisor_dropped_writes_total"): "writes dropped",
                rate("agentvisor_failed_threads_total", "reason"): "failed: {{reason}}",
            },
            width=12,
        ),
    ],
    "Guests and sessions": [
        Panel("Guests", {gauge("agentvisor_guests", "agent, state"): "{{agent}} {{state}}"}),
        Panel(
            "Ends of guests", {rate("agentvisor_ended_guests_total", "agent, ending"): "{{agent}} {{ending}}"}, "ops"
        ),
        Panel("A guest's start", spread("agentvisor_guest_start_seconds", "agent"), "s"),
        Panel(
            "Guests that were started", {rate("agentvisor_guest_starts_total", "agent"): "{{agent}}"}, "ops", width=12
        ),
        Panel(
            "Sessions of clients",
            {
                gauge("agentvisor_sessions"): "open",
                rate("agentvisor_sessions_opened_total"): "opened a second",
            },
            width=12,
        ),
    ],
    "HTTP and streams": [
        Panel("Requests", {rate("agentvisor_http_requests_total", "status"): "{{status}}"}, "ops"),
        Panel(
            "Requests by route",
            {most(rate("agentvisor_http_requests_total", "method, route")): "{{method}} {{route}}"},
            "ops",
        ),
        Panel(
            "Until the first byte",
            {most(quantile(0.95, "agentvisor_http_request_seconds", "method, route")): "{{method}} {{route}} p95"},
            "s",
        ),
        Panel(
            "Under way",
            {gauge("agentvisor_http_requests_in_flight"): "requests", gauge("agentvisor_streams"): "streams"},
        ),
        Panel("Events that agents told", {rate("agentvisor_stream_events_total"): "events"}, "ops"),
        Panel(
            "Gaps, and callers refused",
            {
                rate("agentvisor_stream_gaps_total", "reason"): "gap: {{reason}}",
                rate("agentvisor_refused_callers_total", "reason"): "refused: {{reason}}",
            },
            "ops",
        ),
    ],
    "Temporal": [
        Panel("Calls", {rate("agentvisor_temporal_requests_total", "operation"): "{{operation}}"}, "ops"),
        Panel("A call", {quantile(0.95, "agentvisor_temporal_request_seconds", "operation"): "{{operation}} p95"}, "s"),
        Panel(
            "Calls and polls that failed",
            {
                rate("agentvisor_temporal_request_failures_total", "operation, code"): "{{operation}} {{code}}",
                rate("agentvisor_temporal_poll_failures_total", "operation, code"): "{{operation}} {{code}}",
            },
            "ops",
        ),
        Panel(
            "Tasks wait for a host",
            {quantile(0.95, "agentvisor_worker_schedule_to_start_seconds", "worker, kind"): "{{worker}} {{kind}} p95"},
            "s",
        ),
        Panel(
            "Slots of workers",
            {
                gauge("agentvisor_worker_slots_used", "worker, kind"): "{{worker}} {{kind}} used",
                gauge("agentvisor_worker_slots_free", "worker, kind"): "{{worker}} {{kind}} free",
            },
        ),
        Panel("Polls that are open", {gauge("agentvisor_worker_pollers", "worker, kind"): "{{worker}} {{kind}}"}),
        Panel("A step of a workflow", spread("agentvisor_workflow_task_seconds", "worker"), "s"),
        Panel(
            "Steps that failed",
            {rate("agentvisor_workflow_task_failures_total", "worker"): "{{worker}}"},
            "ops",
            red_from=0.1,
        ),
        Panel("Threads and shelves in memory", {gauge("agentvisor_cached_workflows", "worker"): "{{worker}}"}),
    ],
    "External storage": [
        Panel("Calls", {rate("agentvisor_storage_requests_total", "call, outcome"): "{{call}} {{outcome}}"}, "ops"),
        Panel("A call", spread("agentvisor_storage_request_seconds", "call"), "s"),
        Panel(
            "Bytes, and values that had no room in their threads",
            {
                rate("agentvisor_storage_bytes_total", "call"): "{{call}}",
                rate("agentvisor_moved_values_total"): "values moved",
            },
            "Bps",
        ),
    ],
    "Encryption": [
        Panel(
            "Refused: not encrypted, no key for it, or damaged",
            {rate("agentvisor_refused_payloads_total", "source, reason"): "{{source}}: {{reason}}"},
            "ops",
            width=24,
            red_from=0.001,
            says="What Temporal or external storage gave and a host did not take.",
        ),
    ],
    "The host's process": [
        Panel("Memory", {gauge("process_resident_memory_bytes", "instance"): "{{instance}}"}, "bytes"),
        Panel("CPU", {rate("process_cpu_seconds_total", "instance"): "{{instance}}"}, "percentunit"),
        Panel("Open files", {gauge("process_open_fds", "instance"): "{{instance}}"}),
    ],
}


def dashboard() -> dict[str, Any]:
    """As Grafana imports it."""
    return {
        "__inputs": [],
        "__requires": [
            {"type": "grafana", "id": "grafana", "name": "Grafana", "version": "10.0.0"},
            {"type": "datasource", "id": "prometheus", "name": "Prometheus", "version": "1.0.0"},
            *({"type": "panel", "id": kind, "name": kind, "version": ""} for kind in ("row", "stat", "timeseries")),
        ],
        "id": None,
        "uid": "agentvisor",
        "title": "AgentVisor",
        "description": "Hosts, runs, journal, guests, HTTP, Temporal, storage: docs/monitoring.md says how to read it.",
        "tags": ["agentvisor"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "",
        "templating": {"list": [_datasource(), _instances()]},
        "annotations": {"list": []},
        "links": [],
        "panels": list(_panels()),
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {}}


def _instances() -> dict[str, Any]:
    query = "label_values(agentvisor_build_info, instance)"
    return {
        "name": "instance",
        "label": "Host",
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": "instances"},
        "definition": query,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
        "sort": 1,
    }


def _panels() -> Iterator[dict[str, Any]]:
    number, y = 0, 0
    for title, panels in ROWS.items():
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1},
        }
        y, x, height = y + 1, 0, 0
        for panel in panels:
            number += 1
            if x + panel.width > WIDTH:
                y, x, height = y + height, 0, 0
            height = max(height, 4 if panel.kind == "stat" else 8)
            yield _panel(panel, number, {"x": x, "y": y, "w": panel.width, "h": height})
            x += panel.width
        y += height


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.red_from is not None:
        steps.append({"color": "red", "value": panel.red_from})
    targets = [
        {"refId": chr(ord("A") + at), "datasource": DATASOURCE, "expr": query, "legendFormat": legend or "__auto"}
        for at, (query, legend) in enumerate(panel.queries.items())
    ]
    options: dict[str, Any] = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
    if panel.kind == "stat":
        options = {"reduceOptions": {"calcs": ["lastNotNull"], "values": False}, "colorMode": "value"}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.says,
        "datasource": DATASOURCE,
        "gridPos": place,
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "thresholds": {"mode": "absolute", "steps": steps}},
            "overrides": [],
        },
        "options": options,
        "targets": targets,
    }


def main() -> int:
    """Generate, or check; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if the file is not fresh")
    text = json.dumps(dashboard(), indent=2) + "\n"
    if not parser.parse_args().check:
        FILE.write_text(text, encoding="utf-8")
        return 0
    if FILE.exists() and FILE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{FILE} is not fresh: run {Path(__file__).name}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
