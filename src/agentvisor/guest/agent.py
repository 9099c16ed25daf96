"""The agent process: one run of a user's agent, from its task to its last word.

Forked by the zygote, or started as `python -m agentvisor.guest.agent SUPERVISOR_PID CHANNEL_FD`.
"""

from __future__ import annotations

import asyncio
import atexit
import io
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from agentvisor.core.errors import ValueTooLarge
from agentvisor.guest.cancellation import Cancellation
from agentvisor.guest.family import adopt_orphans, die_with_parent, offer_to_oom_killer
from agentvisor.guest.loader import CouldNotLoad, load
from agentvisor.guest.telling import told_framework
from agentvisor.guest.tracing import join_trace
from agentvisor.guest.user_traceback import UserTraceback, readable
from agentvisor.protocol.v1.guest_pb2 import AgentTask, Outcome

if TYPE_CHECKING:
    # At run time it is imported after the variables that it reads are set.
    from agentvisor.client.socketpair import Channel

AGENT_ERROR = 70
"""Exit code of a process whose agent raised (EX_SOFTWARE)."""


class Verdict(NamedTuple):
    """How the process ends: its exit code, and its last word unless the code says it all."""

    code: int
    outcome: Outcome | None = None
    at_once: bool = False
    """Without waiting for the user's threads: one of them may be what was cancelled."""


def main() -> None:
    """Be an agent that was started, not forked."""
    supervisor, channel = int(sys.argv[1]), int(sys.argv[2])
    die_with_parent(supervisor, signal.SIGKILL)
    adopt_orphans()
    os.set_inheritable(channel, False)
    live(channel)


def live(channel_fd: int) -> NoReturn:
    """Run the agent that the channel's first message names, then end the process."""
    offer_to_oom_killer()
    os.environ["AGENTVISOR_CHANNEL_FD"] = str(channel_fd)
    _show_output_at_once()
    # The SDK reads the variables when it is imported for the first time.
    from agentvisor.client.socketpair import Channel

    own = os.getpid()
    channel = Channel(channel_fd)
    task = channel.receive_task()
    cancellation = Cancellation()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    channel.start_reader(cancellation.request)
    join_trace()
    verdict = _judge(task, channel, cancellation)
    if os.getpid() != own:
        _end_fork(verdict)
    # The last word is near: an interrupt that comes now is too late.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if verdict.outcome is not None:
        _say(verdict.outcome, channel)
    _leave(verdict.code, at_once=verdict.at_once)


def _end_fork(verdict: Verdict) -> NoReturn:
    """End a process that the user's code has forked, and that has come out of it: as a program's would end.

    What became of the run is the agent's own process's to say.
    """
    code = verdict.code
    if verdict.outcome is not None and code == AGENT_ERROR:
        sys.stderr.write(verdict.outcome.traceback)
        code = 1
    _leave(code, at_once=False)


def _say(outcome: Outcome, channel: Channel) -> None:
    try:
        channel.send_outcome(outcome)
    except ValueTooLarge as error:
        # Nothing was written yet.
        why = f"the agent's result: {error.message}; return a reference to large data instead"
        channel.send_outcome(Outcome(kind=Outcome.KIND_FAILED, error_type=type(error).__name__, error_message=why))


def _judge(task: AgentTask, channel: Channel, cancellation: Cancellation) -> Verdict:
    from agentvisor.guest.runner import work_for
    from agentvisor.guest.runners.crewai_environment import set_environment

    # CrewAI reads it when the agent's file imports it, and which framework that uses is known only then.
    set_environment()
    framework = ""
    try:
        agent = load(task.entrypoint, task.search_path)
        framework = task.framework or told_framework(agent)
        return _told(framework, Verdict(0, work_for(task, agent)(agent, task, channel, cancellation)))
    except CouldNotLoad as error:
        return Verdict(
            AGENT_ERROR,
            Outcome(
                kind=Outcome.KIND_COULD_NOT_LOAD,
                error_type=readable(error.error_type),
                error_message=readable(error.message),
                traceback=readable(error.traceback),
            ),
        )
    except SystemExit as error:
        return _told(framework, _judge_exit(error))
    except BaseException as error:  # noqa: BLE001 (whatever an agent raises is its run's error)
        if cancellation.requested and isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
            return _told(framework, Verdict(0, Outcome(kind=Outcome.KIND_CANCELLED), at_once=True))
        return _told(framework, _judge_error(error))


def _told(framework: str, verdict: Verdict) -> Verdict:
    if verdict.outcome is not None:
        verdict.outcome.framework = framework
    return verdict


def _judge_exit(error: SystemExit) -> Verdict:
    match error.code:
        case None | 0:
            # Of a plain agent its runner takes this for a result; a graph has not come to its end.
            told = UserTraceback.of(error)
            why = "the agent called sys.exit() before it had returned"
            return Verdict(
                AGENT_ERROR,
                Outcome(kind=Outcome.KIND_FAILED, error_type=told.error_type, error_message=why, traceback=told.text),
            )
        case int():
            return Verdict(error.code)
        case _:
            # As the interpreter does: the text goes to standard error, and the code is 1.
            told = UserTraceback.of(error)
            sys.stderr.write(f"{told.message}\n")
            return Verdict(1, _failed(told))


def _judge_error(error: BaseException) -> Verdict:
    return Verdict(AGENT_ERROR, _failed(UserTraceback.of(error)))


def _failed(told: UserTraceback) -> Outcome:
    return Outcome(
        kind=Outcome.KIND_FAILED, error_type=told.error_type, error_message=told.message, traceback=told.text
    )


def _show_output_at_once() -> None:
    # New objects: those of the zygote were made for other files.
    sys.stdout = sys.__stdout__ = _lines_to(1)
    sys.stderr = sys.__stderr__ = _lines_to(2)


def _lines_to(file: int) -> io.TextIOWrapper:
    return open(file, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _leave(code: int, *, at_once: bool) -> NoReturn:
    """End the process as the interpreter would, without taking its memory apart object by object."""
    try:
        if not at_once:
            threading._shutdown()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownMemberType]
            atexit._run_exitfuncs()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
