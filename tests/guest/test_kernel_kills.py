"""Whose count of kills for lack of memory is read, and what lately means."""

from pathlib import Path

import pytest

from agentvisor.guest.kernel_kills import KernelKills


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A machine's files: a cgroup of version 2 at /pods/ours, another beside it."""
    for name in ("ours", "theirs"):
        (tmp_path / "pods" / name).mkdir(parents=True)
    (tmp_path / "own").write_text("0::/pods/ours\n")
    (tmp_path / "vmstat").write_text("pgfault 12\noom_kill 5\noom_kill_x 7\n")
    return tmp_path


def events(system: Path, name: str, kills: int) -> None:
    (system / "pods" / name / "memory.events").write_text(f"low 0\noom 9\noom_kill {kills}\noom_group_kill 4\n")


def kills(system: Path) -> KernelKills:
    return KernelKills(cgroups=system, vmstat=system / "vmstat", own=system / "own")


def test_kills_of_ones_own_cgroup_count_and_no_others(system: Path) -> None:
    events(system, "ours", 1)
    events(system, "theirs", 1)
    known = kills(system)
    events(system, "theirs", 2)
    (system / "vmstat").write_text("oom_kill 6\n")
    assert not known.rose_lately()
    events(system, "ours", 2)
    assert known.rose_lately()


def test_without_a_cgroup_that_counts_the_machines_do(system: Path) -> None:
    known = kills(system)
    assert not known.rose_lately()
    (system / "vmstat").write_text("oom_kill 6\n")
    assert known.rose_lately()


def test_what_two_looks_have_seen_is_no_longer_lately(system: Path) -> None:
    events(system, "ours", 0)
    known = kills(system)
    events(system, "ours", 1)
    known.sample()
    assert known.rose_lately()
    known.sample()
    assert not known.rose_lately()


def test_a_system_that_counts_none_has_had_none(tmp_path: Path) -> None:
    known = KernelKills(cgroups=tmp_path, vmstat=tmp_path / "vmstat", own=tmp_path / "own")
    known.sample()
    assert not known.rose_lately()
