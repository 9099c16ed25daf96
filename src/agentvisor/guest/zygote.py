"""The zygote: imports what agents need, once, and starts one agent process per run: a fork of itself.

It knows no secret of the host (it was exec'd, so it inherits no memory), has one thread, and no socket but its control
one. Being the agents' parent, it alone knows how each ended; and when the supervisor is gone, it ends them all.
`python -m agentvisor.guest.zygote SUPERVISOR_PID CONTROL_FD`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
from types import FrameType

from agentvisor.guest import agent, loader
from agentvisor.guest.control import Ended, Failed, Ping, Pong, Prepare, Ready, Start, Started, receive, send
from agentvisor.guest.family import adopt_orphans, die_with_parent, kill_group, kill_tree, thread_count


def main() -> None:
    """Serve until the supervisor is gone; in a forked process, be the agent instead."""
    supervisor, control_fd = int(sys.argv[1]), int(sys.argv[2])
    die_with_parent(supervisor, signal.SIGTERM)
    link = socket.socket(fileno=control_fd)
    link.set_inheritable(False)
    first = receive(link)
    if first is None or not isinstance(first[0], Prepare):
        return
    prepare(first[0])
    send(link, Ready())
    channel = Zygote(link).serve()
    if channel is not None:
        agent.live(channel)


def prepare(wanted: Prepare) -> None:
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
    """Starts agents on demand, and tells how each ended."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._pid = os.getpid()
        # poll holds no file of its own: one that a child closes by number could be closed again later, when the number
        # is another's.
        self._poll = select.poll()
        self._agents: dict[int, int] = {}

    def serve(self) -> int | None:
        """Return None when the supervisor is gone and all agents with it; in a forked agent, its channel's number."""
        # The kernel sends it when the supervisor is dead. The link's end says so a moment before, and what follows, the
        # end of all agents, must not be cut short. (Not SIG_IGN: an exec'd agent would inherit it.)
        signal.signal(signal.SIGTERM, _carry_on)
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
                    match message:
                        case Ping():
                            send(self._link, Pong())
                        case Start():
                            channel, stdout, stderr = files
                            if self._start(message, channel, stdout, stderr):
                                return channel
                        case _:
                            pass
        finally:
            # In a forked agent this is empty.
            for pid in self._agents.values():
                kill_tree(pid)

    def _start(self, request: Start, channel: int, stdout: int, stderr: int) -> bool:
        """Start an agent; True in the agent itself."""
        # A lock that another thread holds now would be held in the child for ever.
        threads = thread_count() if request.fork else 1
        try:
            pid = os.fork() if request.fork and threads == 1 else self._execute(request, channel, stdout, stderr)
        except OSError as error:
            send(self._link, Failed(request.request, str(error)))
            return False
        else:
            if pid == 0:
                self._agents.clear()
                self._become_agent(request, channel, stdout, stderr)
                return True
            pidfd = os.pidfd_open(pid)
            self._agents[pidfd] = pid
            self._poll.register(pidfd, select.POLLIN)
            note = f"the zygote has {threads} threads: the agent starts as a new process" if threads > 1 else ""
            send(self._link, Started(request.request, pid, note))
            return False
        finally:
            # In the parent: the agent has them now.
            if os.getpid() == self._pid:
                for file in (channel, stdout, stderr):
                    os.close(file)

    def _execute(self, request: Start, channel: int, stdout: int, stderr: int) -> int:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "agentvisor.guest.agent", str(self._pid), str(channel)],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            pass_fds=[channel],
            env={**os.environ, **request.environment},
            start_new_session=True,
        )
        # `_bury` reaps it; told so, Popen does not.
        process.returncode = 0
        return process.pid

    def _become_agent(self, request: Start, channel: int, stdout: int, stderr: int) -> None:
        os.setsid()
        die_with_parent(self._pid, signal.SIGKILL)
        adopt_orphans()
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        # The object would close the number later, when it is another's.
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


def _carry_on(_signal: int, _frame: FrameType | None) -> None:
    """Do what is being done."""


if __name__ == "__main__":
    main()
