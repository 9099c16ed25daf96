"""The image is built of what is there, by the rules for images, and says what a host needs of who starts it."""

import subprocess
import zipfile
from pathlib import Path

import pytest
from tests.deploy.dockerfile import DOCKERFILE, image
from tests.deploy.files import BIN, ROUTES, check_command
from tests.docs.blocks import ROOT

from agentvisor.cli import probe

SOURCES = ROOT / "src" / "agentvisor"


def test_the_dockerfile_keeps_the_rules_for_images() -> None:
    checked = subprocess.run([BIN / "hadolint", DOCKERFILE], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "")


def test_a_rule_that_is_broken_is_found(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE.read_text().replace("WORKDIR /app", "WORKDIR app"))
    checked = subprocess.run([BIN / "hadolint", tmp_path / "Dockerfile"], capture_output=True, text=True, check=False)
    assert "DL3000" in checked.stdout


def test_what_is_copied_is_there_and_let_through_to_the_build() -> None:
    copied = image().copied
    assert copied
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for one in copied:
        assert (ROOT / one).exists(), one
        assert one.removeprefix("./") in let_through, f"{one} is kept from the build"


def test_the_image_starts_a_host_as_nobody_in_particular_under_a_first_process() -> None:
    made = image()
    check_command(made.command)
    first, *_, program = made.entrypoint
    assert (Path(first).name, program) == ("tini", "agentvisor")
    user, _, group = made.user.partition(":")
    assert int(user) > 999
    assert int(group) > 999
    assert made.stop_signal == "SIGTERM"
    assert made.volume == made.environment["AGENTVISOR_DEV_DATA_DIR"] == made.environment["HOME"]
    assert all(":" in base or base.startswith("3.") for base in made.bases)
    assert made.healthcheck[:3] == ["python", "-m", probe.__spec__.name]
    address, _, path = made.healthcheck[3].removeprefix("http://").partition("/")
    assert f"/{path}" in ROUTES
    assert address.rpartition(":")[2] == made.command[made.command.index("--port") + 1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as the image's first stage builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [BIN / "python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", folder, ROOT], check=True, timeout=110)
    (built,) = folder.glob("agentvisor-*.whl")
    return built


@pytest.mark.thorough
def test_everything_that_is_in_the_package_is_in_the_wheel(wheel: Path) -> None:
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("agentvisor/")}
    there = {
        str(file.relative_to(SOURCES.parent))
        for file in SOURCES.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert packed == there
    assert "agentvisor/py.typed" in packed
    assert any(name.startswith("agentvisor/cli/demo_project/") for name in packed)
