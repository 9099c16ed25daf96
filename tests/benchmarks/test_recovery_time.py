"""A small dose of the benchmark: it starts its servers itself, kills an agent, and ends what it started."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "recovery_time.py"


@pytest.mark.flow
def test_the_benchmark_measures_a_loss_and_leaves_no_process_behind() -> None:
    before = {process.pid for process in psutil.process_iter()}
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--rounds", "1", "--agents", "function", "--losses", "agent"],
        check=False,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    rows = [line for line in done.stdout.splitlines() if "function" in line]
    assert [line.partition(" function")[0].strip() for line in rows] == [
        "undisturbed: from the HTTP request",
        "agent SIGKILLed, less a backoff of 0.05 s",
        "agent SIGKILLed, less a backoff of 2 s",
    ]
    assert all(float(line.partition(" function")[2].split()[0]) > 0 for line in rows)
    left = [process for process in psutil.process_iter(["cmdline"]) if process.pid not in before]
    assert not [one for one in left if "agentvisor-bench" in " ".join(one.info["cmdline"] or [])]
