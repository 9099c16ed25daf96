"""Starts a program that dies with the process that asked for it, even if that process is killed with SIGKILL.

`python -I -S leash.py PARENT_PID COMMAND...` asks the kernel for SIGKILL at the parent's death, then becomes COMMAND
(same pid). The kernel watches the parent's *thread*: start a leash from a thread that lives as long as the process,
which in a host is the main one. On systems without prctl (macOS) it only becomes COMMAND.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Never returns: the process becomes the command, or ends."""
    parent = int(arguments[0])
    command = arguments[1:]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            sys.exit(f"prctl(PR_SET_PDEATHSIG) failed: {os.strerror(ctypes.get_errno())}")
        # The parent may have died before prctl: then the kernel will send nothing.
        if os.getppid() != parent:
            sys.exit(f"process {parent} is gone")
    os.execv(command[0], command)  # noqa: S606 (no shell: the command is a list)


if __name__ == "__main__":
    main(sys.argv[1:])
