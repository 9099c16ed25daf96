"""Sandbox `process`: a plain process with a scrubbed environment. Always there, and no security boundary."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from agentvisor.protocol.v1.guest_pb2 import GuestSetup

INHERITED = frozenset(
    {
        "HOME",
        "LANG",
        "LANGUAGE",
        "LD_LIBRARY_PATH",
        "LOGNAME",
        "PATH",
        "PYTHONPATH",
        "SHELL",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TMPDIR",
        "TZ",
        "USER",
        "VIRTUAL_ENV",
    }
)
"""The host's variables that a guest may see, besides LC_*: what finds programs and names the locale."""


def start_process(setup: GuestSetup, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a supervisor; see `Sandbox`."""
    process = subprocess.Popen(
        # -P: a folder in which an agent may write is not where the supervisor imports from.
        [sys.executable, "-P", "-m", "agentvisor.guest.supervisor", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={
            **{name: value for name, value in os.environ.items() if name in INHERITED or name.startswith("LC_")},
            **environment,
            # Found in /proc, it says which leftovers are whose.
            "AGENTVISOR_GUEST_ID": setup.guest_id,
        },
        # A Ctrl-C at the host's terminal is the host's to handle.
        start_new_session=True,
    )
    if process.stdin is not None:
        # Small enough for the pipe's buffer, so this does not wait for the supervisor to read.
        process.stdin.write(setup.SerializeToString())
        process.stdin.close()
    return process
