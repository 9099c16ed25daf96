"""The compose file is one, keeps its secrets out of itself and to itself, and says of our hosts what is so."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.compose import COMPOSE, NotGivenError, composed, example, filled
from tests.deploy.files import BIN, DEPLOY, ROUTES, check_command, check_stop, config_of, loaded

from agentvisor.host.config_units import parse_duration
from agentvisor.host.temporal_server import LONGEST_PAUSE

SECRETS = ("AGENTVISOR_HTTP_OPERATOR_KEY", "AGENTVISOR_HTTP_PEER_KEY", "POSTGRES_PASSWORD")


def checked(file: Path) -> subprocess.CompletedProcess[str]:
    command = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", file]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    return dict(composed(filled())["services"])


@pytest.mark.thorough
def test_the_file_is_what_the_specification_of_compose_asks_for(tmp_path: Path) -> None:
    assert checked(COMPOSE).returncode == 0
    (tmp_path / "compose.yaml").write_text(COMPOSE.read_text().replace("stop_grace_period:", "stop_grace:"))
    assert checked(tmp_path / "compose.yaml").returncode == 1


@pytest.mark.parametrize("secret", SECRETS)
def test_nothing_starts_without_a_secret_of_ones_own(secret: str) -> None:
    assert example()[secret] == ""
    with pytest.raises(NotGivenError, match=secret):
        composed(filled() | {secret: ""})


def test_every_variable_is_in_the_example_and_nothing_more() -> None:
    composed(filled())
    assert all(f"${{{name}" in COMPOSE.read_text() for name in example())


def test_what_is_published_is_published_on_loopback(services: dict[str, dict[str, Any]]) -> None:
    published = [port for one in services.values() for port in one.get("ports", [])]
    assert len(published) == 4
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_every_file_that_is_mounted_is_there_and_every_script_is_one(services: dict[str, dict[str, Any]]) -> None:
    for one in services.values():
        places = {}
        for volume in one.get("volumes", []):
            source, target, *_ = volume.split(":")
            if source.startswith("."):
                assert (DEPLOY / source).is_dir(), source
                places[target] = DEPLOY / source
        files = [one["entrypoint"][-1]] if "entrypoint" in one else []
        files += [one["environment"][name] for name in one.get("environment", {}) if name.endswith("_FILE_PATH")]
        files += [word.partition("=")[2] for word in one.get("command", []) if word.startswith("--config.file=")]
        for file in files:
            folder, _, name = file.rpartition("/")
            assert (places[folder] / name).is_file(), file
            if name.endswith(".sh"):
                subprocess.run(["sh", "-n", places[folder] / name], check=True)


def test_no_temporal_of_ours_pauses_a_thread_for_minutes() -> None:
    settings = yaml.safe_load((DEPLOY / "temporal" / "dynamicconfig.yaml").read_text())
    assert settings == {LONGEST_PAUSE[0]: [{"value": LONGEST_PAUSE[1]}]}


def test_a_service_waits_for_what_it_needs_and_that_says_when_it_is_there(services: dict[str, dict[str, Any]]) -> None:
    for one in services.values():
        for needed, how in one.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[needed]
            else:
                # It ends, and is started again only where it failed.
                assert services[needed]["restart"].startswith("on-failure")
    assert services["host"]["depends_on"]["namespace"]["condition"] == "service_completed_successfully"


def test_a_host_starts_with_what_the_file_tells_it(services: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    host = services["host"]
    check_command(host["command"])
    environment = {name: value for name, value in host["environment"].items() if name.startswith("AGENTVISOR_")}
    config = config_of(environment | {"AGENTVISOR_HTTP_HOST": "0.0.0.0"}, DEPLOY / "agents")
    assert config.http.needs_key
    assert config.agents
    check_stop(parse_duration(host["stop_grace_period"]).total_seconds(), config)
    *_, url = host["healthcheck"]["test"]
    assert f"/{url.partition('//')[2].partition('/')[2]}" in ROUTES
    assert int(host["deploy"]["replicas"]) == 2
    # As many ports as hosts, and some more.
    first, last = host["ports"][0].split(":")[1].split("-")
    assert int(last) - int(first) >= 2


def test_prometheus_asks_the_hosts_with_the_operators_key(services: dict[str, dict[str, Any]]) -> None:
    asked = loaded("monitoring/prometheus.yaml")
    (hosts,) = asked["scrape_configs"]
    (found,) = hosts["dns_sd_configs"]
    command = services["host"]["command"]
    assert found["names"] == ["host"]
    assert str(found["port"]) == command[command.index("--port") + 1]
    _, _, name = hosts["authorization"]["credentials_file"].rpartition("/")
    assert name in services["prometheus"]["secrets"]
    assert composed(filled())["secrets"][name] == {"environment": "AGENTVISOR_HTTP_OPERATOR_KEY"}
