"""The blocks of docs/deployment.md and docs/upgrading.md, which need engines and clusters: what they name is there."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.compose import COMPOSE, composed, filled
from tests.deploy.files import BIN, ROUTES, check_command
from tests.docs.blocks import ROOT, Block, blocks_of
from typer.main import get_command

from agentvisor import __version__
from agentvisor.cli.commands import app
from agentvisor.host.config import load_config

PAGES = ("docs/deployment.md", "docs/upgrading.md")
BLOCKS = [block for page in PAGES for block in blocks_of(ROOT / page)]
LINES = [(block, line) for block in BLOCKS if block.language == "bash" for line in block.text.splitlines()]
SYSTEM = ("cd", "cp", "useradd", "systemctl")
"""Programs of the system that name no file of ours, or one that is looked for below."""


def option(words: list[str], name: str) -> list[str]:
    return [words[place + 1] for place, word in enumerate(words) if word == name]


def test_every_block_is_of_a_kind_that_is_tested_here() -> None:
    assert {block.language for block in BLOCKS} == {"bash", "dockerfile", "yaml"}


@pytest.mark.parametrize("block, line", LINES, ids=[line[:60] for _, line in LINES])
def test_a_command_names_what_is_there(block: Block, line: str) -> None:
    program, *words = shlex.split(line)
    files = [word for word in words if word.startswith("deploy/") or word == ".env.example"]
    files += option(words, "--file") + option(words, "--kustomize")
    for file in files:
        assert (ROOT / file).exists() or (ROOT / "deploy" / file).exists(), f"{block}: {file}"
    match program:
        case "agentvisor":
            _check_ours(words)
        case "curl":
            paths = [re.sub(r"^localhost:80\d\d", "", word) for word in words if word.startswith("localhost")]
            assert paths, line
            assert all(path in ROUTES for path in paths)
        case "docker":
            assert words[0] in ("build", "compose")
        case "kubectl":
            assert words[0] in ("create", "apply", "rollout")
            if words[:2] == ["create", "secret"]:
                secret = yaml.safe_load((ROOT / "deploy/kubernetes/secret.example.yaml").read_text())
                given = [one.partition("=")[0] for one in option(words, "--from-literal")]
                assert set(given) == set(secret["stringData"])
                assert words[3] == secret["metadata"]["name"]
        case "install":
            # What the unit reads is what is installed.
            unit = (ROOT / "deploy/systemd/agentvisor.service").read_text()
            (place,) = option(words, "--target-directory") or words[-1:]
            assert place in unit or place.endswith("/agentvisor.service")
        case _:
            assert program in SYSTEM, f"{block}: {line}"


def _check_ours(words: list[str]) -> None:
    """A command of ours, with options that it has."""
    found: Any = get_command(app)
    while hasattr(found, "commands"):
        found, words = found.commands[words[0]], words[1:]
    options = {option for parameter in found.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.language == "yaml"], ids=str)
def test_a_configuration_loads(block: Block, tmp_path: Path) -> None:
    assert block.name == "agentvisor.yaml"
    (tmp_path / block.name).write_text(block.text)
    (tmp_path / "agent.py").touch()
    assert load_config(tmp_path, environ={}).temporal.deployment.is_set


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.language == "dockerfile"], ids=str)
def test_a_dockerfile_keeps_the_rules_for_images(block: Block, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(block.text)
    checked = subprocess.run([BIN / "hadolint", tmp_path / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "")


def test_an_image_is_built_on_one_that_the_page_has_built() -> None:
    tags = {tag for block, line in LINES if "docker build" in line for tag in option(shlex.split(line), "--tag")}
    bases = {line.split()[1] for block in BLOCKS for line in block.text.splitlines() if line.startswith("FROM ")}
    assert bases == {f"agentvisor:{__version__}"}
    assert bases < tags


def test_what_the_pages_say_of_the_files_is_so() -> None:
    page = (ROOT / "docs/deployment.md").read_text()
    services = composed(filled())["services"]
    assert "at 8233" in page
    assert "127.0.0.1:8233:8080" in services["temporal-ui"]["ports"]
    assert services["host"]["stop_grace_period"].startswith("60s")
    assert "${AGENTS_FOLDER" in COMPOSE.read_text()
    images = {services[name]["image"].partition(":")[2] for name in ("schema", "temporal", "namespace")}
    assert len(images) == 1
    check_command(services["host"]["command"])
