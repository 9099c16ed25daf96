"""Rules that hold for every test: what a test needs is there, and in CI nothing is skipped."""

import os
import re
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings
from tests.support import session_folder
from tests.support.temporal import TemporalProcess, temporal_server

# How long an example takes says how busy the machine is, and nothing of what a test is about.
settings.register_profile("agentvisor", deadline=None)
settings.load_profile("agentvisor")

# Debian keeps PostgreSQL's server programs out of PATH.
PROGRAM_FOLDERS = [str(folder) for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
PROGRAM_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), *PROGRAM_FOLDERS])
Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


WITH_A_SERVER = re.compile(r"^pytestmark = .*\bpytest\.mark\.flow\b", re.MULTILINE)
"""A module of which no test is fast."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where no test with a server is wanted (make check), modules that have no others are not even imported."""
    if not str(config.option.markexpr).startswith("not flow ") or collection_path.suffix != ".py":
        return None
    return True if WITH_A_SERVER.search(collection_path.read_text(encoding="utf-8")) else None


def pytest_configure(config: pytest.Config) -> None:
    session_folder.begin(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    session_folder.end(config)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("system"):
        missing = [program for program in marker.args if shutil.which(program, path=PROGRAM_PATH) is None]
        if missing:
            pytest.skip(f"needs {', '.join(missing)} on this machine (.ci/run says how CI gets it)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    return _skip_becomes_failure(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    return _skip_becomes_failure(report)


def _skip_becomes_failure(report: Report) -> Report:
    # A test that CI skips proves nothing, and nobody would notice. (An xfail is reported as skipped too, and is meant.)
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: CI does not skip. {reason}"
    return report


@pytest.fixture(scope="session")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """The address of a real Temporal server, shared by the tests of one worker: give each thread an id of its own."""
    with temporal_server(tmp_path_factory.mktemp("temporal")) as server:
        yield server.address


@pytest.fixture
def temporal_process(tmp_path: Path) -> Generator[TemporalProcess]:
    """A Temporal server of the test's own, to be killed, frozen and started again."""
    with temporal_server(tmp_path / "temporal") as server:
        yield server
