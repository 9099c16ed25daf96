"""`agentvisor config`: what is in force and where it came from, and never a secret."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Ended, run_command

from agentvisor.host.config import load_with_origins
from agentvisor.host.config_settings import SETTINGS
from agentvisor.host.config_view import view

pytestmark = pytest.mark.thorough

FILE = """\
agents:
  desk:
    entrypoint: my.desk:graph
    env: {OPENAI_API_KEY: canary-env}
temporal:
  run_restart: {max_attempts: 5}
  thread_ttl: 36h
http:
  port: 8123
  operator_key: canary-operator
  api_keys:
  - {name: laptop, owner: anna, hash: "sha256:%s"}
encryption:
  keys:
  - {id: "2026-12", env: THE_NEW_KEY}
  - {id: "2026-11", key: "bcanary/bcanary/bcanary/bcanary/bcanary/AAA="}
  search: "off"
storage:
  url: s3://user:canary-url@bucket/prefix
  options: {secret_access_key: canary-option}
""" % ("ab" * 32)
ENVIRONMENT = {
    "AGENTVISOR_HTTP_MAX_BODY": "2MiB",
    "AGENTVISOR_TEMPORAL_API_KEY": "canary-key",
    "THE_NEW_KEY": "bcanary+bcanary+bcanary+bcanary+bcanary+AAA=",
    "TEMPORAL_ADDRESS": "cloud.example:7233",
}


async def config(folder: Path, *arguments: str) -> Ended:
    (folder / "agentvisor.yaml").write_text(FILE)
    return await run_command("config", "--config", str(folder), *arguments, **ENVIRONMENT)


async def test_every_value_is_shown_with_where_it_came_from_and_no_secret(tmp_path: Path) -> None:
    ended = await config(tmp_path, "--json", "--host", "0.0.0.0")
    assert ended.code == 0, ended.err
    shown = json.loads(ended.out)
    settings, file = shown["settings"], str(tmp_path / "agentvisor.yaml")
    assert settings.keys() >= SETTINGS.keys() - {"agents"}
    assert settings["http.port"] == {"value": 8123, "secret": False, "from": {"kind": "file", "name": file, "line": 9}}
    assert settings["http.host"]["from"] == {"kind": "option", "name": "--host"}
    assert settings["http.max_body"]["from"] == {"kind": "variable", "name": "AGENTVISOR_HTTP_MAX_BODY"}
    assert settings["temporal.thread_ttl"]["value"] == "36h"
    assert settings["temporal.run_restart.max_attempts"]["from"]["line"] == 6
    assert settings["temporal.run_timeout"] == {"value": "30m", "secret": False, "from": {"kind": "default"}}
    assert settings["agents.desk.env"] == {
        "value": ["OPENAI_API_KEY"],
        "secret": True,
        "from": {"kind": "file", "name": file, "line": 2},
    }
    assert settings["http.operator_key"]["value"] is True
    assert settings["http.api_keys"]["value"] == ["laptop"]
    assert settings["encryption.keys"]["value"] == ["2026-12", "2026-11"]
    assert settings["storage.url"]["value"] == "s3://bucket/prefix"
    assert shown["temporal"]["Temporal's address"] == "cloud.example:7233 (environment variable TEMPORAL_ADDRESS)"
    assert shown["temporal"]["API key"] == "set (not shown) (temporal.api_key)"
    assert "canary" not in ended.out + ended.err


async def test_only_what_was_changed_fits_a_terminal(tmp_path: Path) -> None:
    ended = await config(tmp_path, "--changed", "--port", "8124")
    lines = {line.split()[0]: line for line in ended.out.splitlines() if line}
    assert "8124" in lines["http.port"]
    assert lines["http.port"].rstrip().endswith("option --port")
    assert f"{tmp_path}/agentvisor.yaml, line 6" in lines["temporal.run_restart.max_attempts"]
    assert "temporal.run_timeout" not in lines
    assert "canary" not in ended.out + ended.err


async def test_a_broken_configuration_is_the_hosts_own_error(tmp_path: Path) -> None:
    (tmp_path / "agentvisor.yaml").write_text("http:\n  prot: 1\n")
    ended = await run_command("config", "--config", str(tmp_path))
    assert ended.code == 2
    line = f"agentvisor: unknown key http.prot in {tmp_path}/agentvisor.yaml, line 2; did you mean http.port?\n"
    assert ended.err == line


def test_what_is_shown_are_the_values_in_force(tmp_path: Path) -> None:
    """All of them: a setting that the view forgets would be missed by somebody who looks for a mistake."""
    (tmp_path / "agentvisor.yaml").write_text(FILE)
    loaded, origins = load_with_origins(tmp_path, environ={**ENVIRONMENT, "AGENTVISOR_STORAGE_MAX_VALUE": "3MiB"})
    values = {one.key: one for one in view(loaded, origins)}
    assert (values["storage.max_value"].text, values["storage.max_value"].value) == ("3MiB", 3 << 20)
    assert values["dev.data_dir"].value == str(tmp_path / ".agentvisor")
    assert {one.key for one in values.values() if one.origin.kind == "default"} | origins.keys() >= SETTINGS.keys() - {
        "agents"
    }
