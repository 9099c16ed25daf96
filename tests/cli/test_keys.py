"""`agentvisor key new` prints a key once, and a configuration in which it counts."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentvisor.cli.commands import app
from agentvisor.host.api_keys import PREFIX, found
from agentvisor.host.config import load_config


def new(*options: str) -> str:
    made = CliRunner().invoke(app, ["key", "new", *options])
    assert made.exit_code == 0, made.output
    return made.output


@pytest.mark.parametrize("owner", ["anna", "auth0|1234", "Ö: 'x' #y\"", "- a"])
def test_the_key_counts_in_the_configuration_that_is_printed(tmp_path: Path, owner: str) -> None:
    printed = new("--owner", owner)
    (key,) = re.findall(rf"{PREFIX}\S{{43}}", printed)
    (tmp_path / "agentvisor.yaml").write_text(printed[printed.index("\nhttp:") :])
    keys = load_config(tmp_path, environ={}).http.api_keys
    counts = found(key, keys, datetime.now(UTC))
    assert counts is not None
    assert counts.owner == owner
    assert key not in (tmp_path / "agentvisor.yaml").read_text()


def test_each_key_is_another(tmp_path: Path) -> None:
    lines = "".join(new("--owner", "anna").partition("api_keys:\n")[2] for _ in range(3))
    (tmp_path / "agentvisor.yaml").write_text(f"http:\n  api_keys:\n{lines}")
    assert len(load_config(tmp_path, environ={}).http.api_keys) == 3


def test_a_key_can_end(tmp_path: Path) -> None:
    printed = new("--owner", "anna", "--name", "trial", "--days", "2")
    (tmp_path / "agentvisor.yaml").write_text(printed[printed.index("\nhttp:") :])
    (one,) = load_config(tmp_path, environ={}).http.api_keys
    assert one.name == "trial"
    assert one.counts_at(datetime.now(UTC) + timedelta(days=1))
    assert not one.counts_at(datetime.now(UTC) + timedelta(days=3))


def test_an_owner_that_is_not_allowed_is_refused() -> None:
    made = CliRunner().invoke(app, ["key", "new", "--owner", "a\nb"])
    assert made.exit_code == 2
    assert "is not allowed" in made.output
