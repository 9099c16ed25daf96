"""What a guest left behind is found by what it cannot lose, and nothing else is touched."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from tests.host.guest_processes import alive

from agentvisor.host.leftovers import DEADLINE_SECONDS, end_leftovers
from agentvisor.protocol.guest_mark import mark_of, marked

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="marks are Linux's")

BEAR = """
import subprocess, sys
from agentvisor.protocol.guest_mark import bear_mark
bear_mark(sys.argv[1])
child = subprocess.Popen(["sleep", "305"], env={}, start_new_session=True, stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
"""


def orphan(guest_id: str) -> int:
    """A process without parent, environment and session in common with the one that bore the mark."""
    ran = subprocess.run([sys.executable, "-c", BEAR, guest_id], stdout=subprocess.PIPE, check=True)
    return int(ran.stdout)


@contextmanager
def own_child() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(["sleep", "305"], env={}, start_new_session=True)
    try:
        yield child
    finally:
        child.kill()
        child.wait()


@pytest.mark.thorough
def test_an_orphan_without_an_environment_is_ended_and_other_guests_and_own_children_are_spared() -> None:
    mine, others = uuid4().hex, uuid4().hex
    pid, spared = orphan(mine), orphan(others)
    with own_child() as child:
        assert (marked(pid), marked(spared), marked(child.pid)) == (mark_of(mine), mark_of(others), None)
        end_leftovers(mine)
        assert (alive([pid]), alive([spared, child.pid])) == ([], [spared, child.pid])
        end_leftovers(others)
        assert alive([spared, child.pid]) == [child.pid]


def test_a_zombie_that_nobody_reaps_is_not_waited_for() -> None:
    guest = uuid4().hex
    code = f"from agentvisor.protocol.guest_mark import bear_mark; bear_mark({guest!r}); print()"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None
    # Until its end: that is a zombie's, or that of one which is about to be.
    child.stdout.read()
    began = time.monotonic()
    end_leftovers(guest)
    assert time.monotonic() - began < DEADLINE_SECONDS
    assert marked(child.pid) == mark_of(guest)
    child.wait()
