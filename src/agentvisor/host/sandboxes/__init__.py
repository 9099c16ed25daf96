"""What a guest is put in: one file per kind, each a function that starts a supervisor."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping

from agentvisor.protocol.v1.guest_pb2 import GuestSetup

Sandbox = Callable[[GuestSetup, Mapping[str, str]], subprocess.Popen[bytes]]
"""Starts a supervisor with its set-up and the agent's own variables; raises OSError where that cannot be done.

The kernel ends the supervisor with the *thread* that called this: call it from one that lives as long as the host.
"""
