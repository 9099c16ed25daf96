"""The alerts and the dashboard ask for what there is, in a way that makes sense, and name pages that exist."""

import json
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.monitoring.queries import KNOWN, faults, names, parsed, result_labels, table_name

from agentvisor.host.metrics import TABLE

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
PAGE = (ROOT / "docs" / "monitoring.md").read_text()
GROUPS: list[dict[str, Any]] = yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]
ALERTS: dict[str, dict[str, Any]] = {rule["alert"]: rule for group in GROUPS for rule in group["rules"]}
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "grafana-dashboard.json").read_text())
PANELS: list[dict[str, Any]] = [one for one in DASHBOARD["panels"] if one["type"] != "row"]
TARGETS = [(panel["title"], target) for panel in PANELS for target in panel["targets"]]


# --- what the checks find --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query, fault",
    [
        ("rate(agentvisor_run_total[5m])", "there is no agentvisor_run_total"),
        ("rate(agentvisor_live_attempts[5m])", "is a gauge"),
        ("agentvisor_restarts_total > 0", "is a counter"),
        ('rate(agentvisor_restarts_total{reason="x"}[5m])', "no label reason"),
        ('rate(agentvisor_restarts_total{ending="agent_sinal"}[5m])', "is never agent_sinal"),
        ('rate(agentvisor_restarts_total{ending=~"agent_signal|gone"}[5m])', "is never gone"),
        ("sum by (reason) (rate(agentvisor_restarts_total[5m]))", "does not have"),
        ("histogram_quantile(0.9, sum by (le) (rate(agentvisor_restarts_total[5m])))", "no histogram"),
        ("histogram_quantile(0.9, sum(rate(agentvisor_commit_seconds_bucket[5m])))", "keep le"),
        ("histogram_quantile(0.9, sum by (le) (rate(agentvisor_commit_seconds_bucket[5m]))) > 60", "last bucket"),
    ],
)
def test_a_query_that_makes_no_sense_is_found_out(query: str, fault: str) -> None:
    found = faults(query)
    assert any(fault in one for one in found), found


def test_what_is_no_promql_is_found_out() -> None:
    with pytest.raises(ValueError, match="parenthesis"):
        parsed("sum(agentvisor_live_attempts")


# --- alerts ----------------------------------------------------------------------------------------------------------


def test_no_two_alerts_have_one_name() -> None:
    assert len(ALERTS) == sum(len(group["rules"]) for group in GROUPS)


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alerts_query_makes_sense(alert: str) -> None:
    assert faults(ALERTS[alert]["expr"]) == []


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_says_how_bad_it_is_what_it_means_and_where_it_is_explained(alert: str) -> None:
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert re.fullmatch(r"\d+[mh]", rule["for"])
    texts = rule["annotations"]
    assert texts.keys() == {"summary", "description", "runbook"}
    used = {name for text in texts.values() for name in re.findall(r"\$labels\.(\w+)", text)}
    assert used <= result_labels(parsed(rule["expr"]))
    file, _, anchor = texts["runbook"].partition("#")
    headings = re.findall(r"^#+ (.*)$", (ROOT / file).read_text(), re.MULTILINE)
    assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_page_explains_every_alert_under_the_heading_that_it_names() -> None:
    for alert, rule in ALERTS.items():
        anchor = rule["annotations"]["runbook"].partition("#")[2]
        sections = re.split(r"^### ", PAGE, flags=re.MULTILINE)
        (section,) = [one for one in sections if one.partition("\n")[0].lower().replace(" ", "-") == anchor]
        assert f"`{alert}`" in section, alert
    assert set(re.findall(r"`(AgentVisor\w+)`", PAGE)) == ALERTS.keys()


@pytest.mark.parametrize("route", ["/ok", "/readyz"])
def test_a_host_that_says_that_it_is_not_ready_is_no_server_error(route: str) -> None:
    for part in re.findall(r"\{([^}]*)\}", ALERTS["AgentVisorServerErrors"]["expr"]):
        (but,) = re.findall(r'route!~"([^"]*)"', part)
        assert re.fullmatch(but, route), part


def test_what_the_table_says_to_alert_on_has_an_alert() -> None:
    asked = {name for name, one in TABLE.items() if "alert on" in one.says}
    assert asked <= {table_name(name) for rule in ALERTS.values() for name in names(parsed(rule["expr"]))}
    assert len(asked) > 3


# --- the dashboard ---------------------------------------------------------------------------------------------------


def test_the_dashboard_is_fresh() -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / "generate_dashboard.py", "--check"], check=True)


@pytest.mark.parametrize("title, target", TARGETS, ids=[f"{title}-{one['refId']}" for title, one in TARGETS])
def test_a_panels_query_makes_sense_and_its_legend_has_its_labels(title: str, target: dict[str, Any]) -> None:
    assert faults(target["expr"]) == []
    assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= result_labels(parsed(target["expr"])), title


def test_every_metric_is_on_the_dashboard() -> None:
    shown = {table_name(name) for _, target in TARGETS for name in names(parsed(target["expr"]))}
    assert TABLE.keys() - shown == set()
    assert shown <= TABLE.keys() | KNOWN.keys()


def test_grafana_can_import_it() -> None:
    assert DASHBOARD["uid"] == "agentvisor"
    assert DASHBOARD["id"] is None
    variables = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    named = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD)))
    assert named - {"__rate_interval", "__range", "__all"} == variables.keys()
    ids = [one["id"] for one in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    assert {one["type"] for one in DASHBOARD["panels"]} <= {one["id"] for one in DASHBOARD["__requires"]}


def test_no_two_panels_lie_on_each_other_and_none_is_cut_off() -> None:
    places = [one["gridPos"] for one in DASHBOARD["panels"]]
    assert all(one["x"] + one["w"] <= 24 for one in places)
    for one, other in combinations(places, 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)
