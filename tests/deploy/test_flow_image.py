"""What the image would run: the wheel, installed where it cannot write, by a user who owns but /data and /tmp."""

from __future__ import annotations

import os
import shutil
import signal
import site
import stat
import subprocess
import sys
import tempfile
import venv
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from tests.deploy.dockerfile import image
from tests.deploy.files import DEPLOY
from tests.docs.blocks import ROOT
from tests.support.temporal import free_ports
from tests.support.waiting_sync import until

from agentvisor.host import leash

pytestmark = [pytest.mark.flow, pytest.mark.timeout(180)]

NOBODY = 65534
KEY = "k" * 40


@pytest.fixture
def rootfs() -> Generator[Path]:
    """A folder that everybody may enter and nobody may write to: pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="agentvisor-image-"))
    try:
        yield folder
    finally:
        for one in folder.rglob("*"):
            if one.is_dir() and not one.is_symlink():
                one.chmod(0o700)
        shutil.rmtree(folder)


def installed(folder: Path) -> Path:
    """The wheel in an environment of its own, with this one's packages behind it; the environment's Python."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheels = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(folder / "wheels")]
    subprocess.run([*pip, "wheel", *wheels, str(ROOT)], check=True, timeout=110)
    environment = folder / "environment"
    venv.create(environment, symlinks=True)
    (wheel,) = (folder / "wheels").glob("agentvisor-*.whl")
    subprocess.run(
        [*pip, "--python", str(environment / "bin" / "python"), "install", "--no-deps", "--no-index", wheel],
        check=True,
        timeout=110,
    )
    (packages,) = environment.glob("lib/python*/site-packages")
    # Behind the wheel: its own agentvisor is found first, and every other package where this test's are.
    behind = [place for place in sys.path if place.endswith("site-packages")] or site.getsitepackages()
    (packages / "behind.pth").write_text("\n".join(behind) + "\n")
    return environment / "bin" / "python"


def as_nobody(command: list[str]) -> list[str]:
    """The command by a user who owns nothing. Whoever runs the tests, unless it is root, is one already."""
    if os.getuid():
        return command
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    interpreter = Path(sys.executable).resolve()
    if any(not folder.stat().st_mode & stat.S_IXOTH for folder in interpreter.parents):
        # Of an interpreter in root's home: it may be read, and nothing may be written.
        user += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return [*user, *command]


def contents(folder: Path) -> dict[str, tuple[int, float]]:
    return {
        str(one.relative_to(folder)): (one.stat().st_size, one.stat().st_mtime)
        for one in folder.rglob("*")
        if one.is_file()
    }


def test_the_wheel_runs_as_nobody_from_where_it_cannot_write(rootfs: Path, temporal: str) -> None:
    python = installed(rootfs)
    app, data, tmp = rootfs / "app", rootfs / "data", rootfs / "tmp"
    shutil.copytree(DEPLOY / "agents", app, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(leash.__file__, app / "leash.py")
    for own in (data, tmp):
        own.mkdir()
        own.chmod(0o700)
        if os.getuid() == 0:
            os.chown(own, NOBODY, NOBODY)
    for one in [rootfs, *rootfs.rglob("*")]:
        if not one.is_symlink() and one not in (data, tmp):
            one.chmod(stat.S_IMODE(one.stat().st_mode) & ~0o222 | 0o555)
    before = contents(python.parents[1]) | contents(app)
    made, (port,) = image(), free_ports(1)
    # Nothing of this test's environment, as in a container: what the image sets, and what its user does.
    given = {
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "TMPDIR": str(tmp),
        **made.environment,
        "AGENTVISOR_DEV_DATA_DIR": str(data),
        "HOME": str(data),
        "AGENTVISOR_TEMPORAL_ADDRESS": temporal,
        "AGENTVISOR_TEMPORAL_TASK_QUEUE": f"image-{port}",
        "AGENTVISOR_HTTP_OPERATOR_KEY": KEY,
    }
    command = [made.entrypoint[-1], *(one.replace("8090", str(port)) for one in made.command)]
    started = [str(python), "-I", "-S", str(app / "leash.py"), str(os.getpid())]
    with (rootfs.parent / f"{rootfs.name}.log").open("w+") as log:
        process = subprocess.Popen(
            as_nobody([*started, str(python.parent / command[0]), *command[1:]]),
            cwd=app,
            env=given,
            stdout=log,
            stderr=log,
        )
        try:
            health = [python, *(one.replace("8090", str(port)) for one in made.healthcheck[1:])]
            until(
                lambda: process.poll() is not None or subprocess.run(health, env=given, check=False).returncode == 0,
                seconds=90,
                pause=0.3,
            )
            assert process.poll() is None, Path(log.name).read_text()
            client = get_sync_client(url=f"http://127.0.0.1:{port}", api_key=KEY)
            thread = client.threads.create()["thread_id"]
            asked: Any = client.runs.wait(thread, "greeter", input={})
            assert asked["__interrupt__"][0]["value"] == "Whom shall I greet?", Path(log.name).read_text()
            process.send_signal(signal.Signals[made.stop_signal])
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()
            Path(log.name).unlink()
    assert contents(python.parents[1]) | contents(app) == before
