"""The zygote: imports what agents need, once, and forks one agent process per run.

It knows no secret of the host (it was exec'd, so it inherits no memory), has one thread, and no socket but its control
one. `python -m agentvisor.guest.zygote SUPERVISOR_PID CONTROL_FD`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
from types import FrameType

from agentvisor.guest import agent, loader
from agentvisor.guest.control import Ended, Fork, Forked, Preload, Ready, Refused, receive, send
from agentvisor.guest.family import adopt_orphans, die_with_parent, kill_group, kill_tree, thread_count


def main() -> None:
    """Serve until the supervisor is gone; in a forked process, be the agent instead."""
    supervisor, control_fd = int(sys.argv[1]), int(sys.argv[2])
    die_with_parent(supervisor, signal.SIGTERM)
    link = socket.socket(fileno=control_fd)
    first = receive(link)
    if first is None or not isinstance(first[0], Preload):
        return
    preload(first[0])
    send(link, Ready())
    channel = Zygote(link).serve()
    if channel is not None:
        agent.live(channel)


def preload(wanted: Preload) -> None:
    """Import all that can be, then make what is in memory shareable."""
    for module in wanted.modules:
        # A framework may be absent; an agent that does not import says so in its run, where somebody reads it.
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    if wanted.entrypoint:
        with contextlib.suppress(BaseException):
            loader.load(wanted.entrypoint, wanted.search_path)
    # Without this, the first collection in each agent would copy every page: 32 MB an agent instead of 7.
    gc.collect()
    gc.freeze()
    gc.disable()


class Zygote:
    """Forks on demand, and tells how each agent ended."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._pid = os.getpid()
        # poll holds no file of its own: one that a child closes by number could be closed again later, when the number
        # is another's.
        self._poll = select.poll()
        self._agents: dict[int, int] = {}

    def serve(self) -> int | None:
        """Return None when the supervisor is gone and all agents with it; in each new agent, its channel's number."""
        signal.signal(signal.SIGTERM, _leave)
        self._poll.register(self._link, select.POLLIN)
        try:
            while True:
                for file, _events in self._poll.poll():
                    if file in self._agents:
                        self._bury(file)
                        continue
                    received = receive(self._link)
                    if received is None:
                        return None
                    message, files = received
                    if isinstance(message, Fork):
                        channel = self._fork(message, *files)
                        if channel is not None:
                            return channel
        finally:
            # In a new agent this is empty.
            for pid in self._agents.values():
                kill_tree(pid)

    def _fork(self, request: Fork, channel: int, stdout: int, stderr: int) -> int | None:
        if (threads := thread_count()) > 1:
            # A lock that another thread holds now would be held in the child for ever.
            send(self._link, Refused(request.request, f"the zygote has {threads} threads"))
            self._close(channel, stdout, stderr)
            return None
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        try:
            pid = os.fork()
            if pid == 0:
                self._agents.clear()
                self._become_agent(request, channel, stdout, stderr)
                return channel
            pidfd = os.pidfd_open(pid)
            self._agents[pidfd] = pid
            self._poll.register(pidfd, select.POLLIN)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        self._close(channel, stdout, stderr)
        send(self._link, Forked(request.request, pid))
        return None

    def _become_agent(self, request: Fork, channel: int, stdout: int, stderr: int) -> None:
        os.setsid()
        die_with_parent(self._pid, signal.SIGKILL)
        adopt_orphans()
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        # The object would close the number later, by then another file's.
        self._link.detach()
        os.closerange(3, channel)
        os.closerange(channel + 1, os.sysconf("SC_OPEN_MAX"))
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.environ.update(request.environment)
        gc.enable()
        # The standard library's generators seed themselves anew at a fork; this one does not.
        if (numpy_random := sys.modules.get("numpy.random")) is not None:
            numpy_random.seed()

    def _bury(self, pidfd: int) -> None:
        pid = self._agents.pop(pidfd)
        self._poll.unregister(pidfd)
        # Before the agent is reaped its id is its own: the group is really its group.
        kill_group(pid)
        result = os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
        os.close(pidfd)
        if result is not None:
            send(self._link, Ended(pid, killed=result.si_code != os.CLD_EXITED, code=result.si_status))

    @staticmethod
    def _close(*files: int) -> None:
        for file in files:
            os.close(file)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    sys.exit("the supervisor is gone")


if __name__ == "__main__":
    main()
