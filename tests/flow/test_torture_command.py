"""A small dose of `agentvisor torture`: it kills, it proves, it says what it found, and nothing of it is left."""

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from tests.support.dev_process import AGENTVISOR
from tests.support.waiting_sync import until

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
    done = tortured(tmp_path / "torture", "--minutes", "0.25", "--seed", "5", "--pause", "0.6")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-4000:]
    assert figure(done, "kills") >= 7
    assert figure(done, "runs completed") >= 6
    assert figure(done, "checkpoints acknowledged") >= 50
    for what in ("lost acknowledgements", "repeated finished tasks", "stuck threads", "processes left"):
        assert figure(done, what) == 0
    assert re.search(r"agent killed +│ +\d+ +│ +\d+ +│ +[\d.]+ s +│ +[\d.]+ s", done.stdout)
    assert "seed 5" in done.stdout


def test_a_violation_ends_it_with_an_error_that_names_seed_and_evidence(tmp_path: Path) -> None:
    # A loss is made on purpose: of a checkpoint that no thread has, the outside record says that it was acknowledged.
    folder = tmp_path / "torture"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(tortured, folder, "--minutes", "0.05", "--seed", "6")
        until(lambda: forged(folder) or running.done(), seconds=120)
        done = running.result()
    assert done.returncode == 1
    said = re.sub(r"\s+", " ", done.stdout)
    assert "VIOLATION: what was acknowledged is there" in said
    assert re.search(rf"thread torture-6-\d+-1, run [0-9a-f-]{{36}}, checkpoint {FORGED}, \S+\.jsonl", said)
    assert "FAILED with --seed 6" in said


FORGED = "0000-forged"


def forged(folder: Path) -> bool:
    """Whether a thread's record could be made to claim a checkpoint that never was."""
    for record in (folder / "records").glob("*-1.jsonl"):
        for line in record.read_text().split("\n")[:-1]:
            facts = json.loads(line)
            if facts["what"] == "stored":
                with record.open("a") as file:
                    file.write(json.dumps(facts | {"checkpoint": FORGED}) + "\n")
                return True
    return False
