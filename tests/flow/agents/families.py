"""An agent with a family: a child, one in a session of its own that ignores signals, and a daemon that hides."""

import subprocess
import sys

from agents import signs
from agents.effects import effect

STUBBORN = "trap '' TERM INT HUP; echo $$; sleep 600 & wait; sleep 600"
DAEMON = """
import os, sys
if os.fork():
    sys.exit()
os.setsid()
if os.fork():
    os._exit(0)
print(os.getpid(), flush=True)
os.closerange(0, 3)
os.execve("/bin/sleep", ["sleep", "600"], {})
"""


def raise_one(given: object) -> str:
    """Raise the family, once in a run; then wait for the sign."""
    if not signs.sign("raised").exists():
        signs.sign("raised").touch()
        child = subprocess.Popen(["sleep", "600"])
        stubborn = _first_line(["sh", "-c", STUBBORN])
        daemon = _first_line([sys.executable, "-c", DAEMON])
        effect(f"raised {child.pid} {stubborn} {daemon}")
    signs.wait_for("gate")
    return "done"


def leave(given: object) -> str:
    """Raise the family and leave it behind."""
    signs.sign("gate").touch()
    return raise_one(given)


def _first_line(command: list[str]) -> int:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    return int(process.stdout.readline())
