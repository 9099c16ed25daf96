"""`agentvisor encryption-key new`: a key that the configuration takes, another one each time."""

from pathlib import Path

import yaml
from typer.testing import CliRunner

from agentvisor.cli.commands import app
from agentvisor.host.config import load_config


def made(*options: str) -> str:
    done = CliRunner().invoke(app, ["encryption-key", "new", *options])
    assert done.exit_code == 0, done.output
    return done.output


def test_it_prints_a_key_and_what_names_it_in_the_configuration(tmp_path: Path) -> None:
    said = made("--id", "2026-12")
    key = next(line.strip() for line in said.splitlines() if line.startswith("  ") and line.strip().endswith("="))
    tree = yaml.safe_load(said[said.index("encryption:") :])
    tree["encryption"]["index_key"] = made("--bare").strip()
    (tmp_path / "agentvisor.yaml").write_text(yaml.safe_dump(tree))
    (one,) = load_config(tmp_path, environ={"ENCRYPTION_KEY_2026_12": key}).encryption.keys
    assert (one.id, len(one.secret())) == ("2026-12", 32)
    assert made("--bare") != made("--bare")
