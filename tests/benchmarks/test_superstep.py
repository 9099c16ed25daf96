"""A small dose of the benchmark: it starts its servers itself, measures all three savers, and ends what it started."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "superstep.py"


@pytest.mark.flow
@pytest.mark.system("initdb")
def test_the_benchmark_measures_every_saver_and_leaves_no_process_behind() -> None:
    before = {process.pid for process in psutil.process_iter()}
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--rounds", "1", "--steps", "5"],
        check=False,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line[:1].isalpha()}
    for saver in ("agentvisor", "postgres", "sqlite"):
        milliseconds, stored = float(rows[saver][1]), float(rows[saver][3])
        assert milliseconds > 0
        assert stored > 0
    assert int(rows["agentvisor"][5]) > 10, "events of a real workflow's history"
    left = [process for process in psutil.process_iter(["cmdline"]) if process.pid not in before]
    assert not [one for one in left if "agentvisor-bench" in " ".join(one.info["cmdline"] or [])]
