"""A small dose of `agentvisor torture`: it kills, it proves, it says what it found, and nothing of it is left."""

import os
import re
import subprocess
from pathlib import Path

import psutil
import pytest
from tests.support.dev_process import AGENTVISOR

pytestmark = [pytest.mark.flow, pytest.mark.timeout(240)]


def tortured(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [AGENTVISOR, "torture", "--keep", str(folder), "--threads", "6", *options]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=220, env={**os.environ, "NO_COLOR": "1"}
    )
    left = [one for one in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(one.info["cmdline"] or ())]
    assert not left
    return done


def figure(done: subprocess.CompletedProcess[str], name: str) -> int:
    found = re.search(rf"^{name} +(\d+)$", done.stdout, re.MULTILINE)
    assert found, done.stdout[-4000:] + done.stderr[-4000:]
    return int(found[1])


def test_a_small_dose_is_survived_and_told_in_figures(tmp_path: Path) -> None:
    done = tortured(tmp_path / "torture", "--minutes", "0.35", "--seed", "5", "--pause", "0.7")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-4000:]
    assert figure(done, "kills") >= 10
    assert figure(done, "runs completed") >= 6
    assert figure(done, "checkpoints acknowledged") >= 50
    for what in ("lost acknowledgements", "repeated finished tasks", "stuck threads", "processes left"):
        assert figure(done, what) == 0
    assert re.search(r"agent killed +│ +\d+ +│ +\d+ +│ +[\d.]+ s +│ +[\d.]+ s", done.stdout)
    assert "seed 5" in done.stdout


def test_a_violation_ends_it_with_an_error_that_names_seed_and_evidence(tmp_path: Path) -> None:
    # One of the truths is broken on purpose: where nothing may take longer than a moment, everything is stuck.
    done = tortured(tmp_path / "torture", "--minutes", "0.1", "--seed", "6", "--patience", "0.01")
    assert done.returncode == 1
    said = re.sub(r"\s+", " ", done.stdout)
    assert "VIOLATION: no thread is stuck" in said
    assert re.search(r"thread torture-6-\d+-1, run [0-9a-f-]{36}, checkpoint -, \S+\.jsonl", said)
    assert "FAILED with --seed 6" in said
