"""A small dose of `make load`: it says that nothing was lost, on one host and on two."""

import subprocess
import sys

import pytest
from tests.docs.blocks import ROOT

pytestmark = [pytest.mark.flow, pytest.mark.timeout(240)]


def test_no_event_and_no_value_is_lost_when_many_clients_read_at_a_time() -> None:
    dose = ["--streams", "10", "--threads", "10", "--events", "20", "--pause", "0.01"]
    done = subprocess.run(
        [sys.executable, "load.py", *dose], cwd=ROOT / "benchmarks", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("events checked                                  200,") == 2
    assert "10 threads are still there with their values" in done.stdout
    moved = [line.rsplit(" ", 1)[1] for line in done.stdout.splitlines() if "runs that lived on another host" in line]
    assert moved[0] == "0"
    assert int(moved[1]) > 0
