"""The spans of runs and attempts, told by the thread's workflow when they end: whoever was killed meanwhile."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress

from agentvisor.core.attempts import End
from agentvisor.core.ids import ThreadId
from agentvisor.core.runs import CONSEQUENCES, Attempt, Ending, Run, RunStatus
from agentvisor.host.config_tree import AgentConfig
from agentvisor.host.tracing.place import Place, asked_at
from agentvisor.host.tracing.spans import AGENT, ATTEMPT, FRAMEWORK, HOST, RUN, THREAD, Told, Tracing
from agentvisor.protocol.v1 import run_pb2

_REMEMBERED = 4096
"""Spans that are not told again, where a step of a workflow is taken twice because its end did not reach Temporal."""

_FINE = {Ending.COMPLETED, Ending.PAUSED, Ending.CANCELLED, Ending.HANDOVER, Ending.NOT_STARTED, Ending.HOST_STOPPED}


class RunSpans:
    """Told of ends by the workflows that this host drives."""

    def __init__(self, tracing: Tracing, agents: Mapping[str, AgentConfig], host_id: str) -> None:
        self._tracing = tracing
        self._agents = agents
        self._host_id = host_id
        self._loop = asyncio.get_running_loop()
        self._told: OrderedDict[str, None] = OrderedDict()

    def ended(self, thread_id: ThreadId, end: End) -> None:
        """Called in a step of a workflow, in a thread of its own: nothing of it may fail there, or take time."""
        run, attempt = end.run, end.attempt
        place = None if run.is_session else asked_at(run_pb2.RunSpec.FromString(run.spec.body))
        if place is None or not place.sampled:
            return
        span = (
            self._of_run(thread_id, run, place) if attempt is None else self._of_attempt(thread_id, run, attempt, place)
        )
        with suppress(RuntimeError):  # the host has ended meanwhile
            self._loop.call_soon_threadsafe(self._tell, span)

    def _tell(self, span: Told) -> None:
        # In the loop: Temporal's sandbox lets no library do its work in a workflow's thread.
        key = f"{span.place.trace_id}{span.place.span_id}"
        if key in self._told:
            return
        self._told[key] = None
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        self._tracing.tell(span)

    def _of_run(self, thread_id: ThreadId, run: Run, asked: Place) -> Told:
        failed = run.status in (RunStatus.ERROR, RunStatus.TIMEOUT)
        return Told(
            name=f"run {run.spec.agent}",
            place=asked.of_run(run.run_id),
            parent=asked,
            start_ms=run.created_at_ms,
            end_ms=run.updated_at_ms,
            attributes={
                **self._common(thread_id, run),
                "agentvisor.status": run.status.name.lower(),
                "agentvisor.paused": run.paused,
                "agentvisor.attempts": len(run.attempts),
                **({"error.type": run.error_type} if failed and run.error_type else {}),
            },
            error=_says(run) if failed else "",
        )

    def _of_attempt(self, thread_id: ThreadId, run: Run, attempt: Attempt, asked: Place) -> Told:
        ending = attempt.ending or Ending.NOT_STARTED
        number = attempt.attempt
        failed = ending not in _FINE
        return Told(
            name=f"attempt {run.spec.agent}",
            place=asked.of_attempt(run.run_id, number),
            parent=asked.of_run(run.run_id),
            start_ms=attempt.started_at_ms or attempt.scheduled_at_ms,
            end_ms=attempt.ended_at_ms,
            attributes={
                **self._common(thread_id, run),
                ATTEMPT: number,
                "agentvisor.ending": ending.name.lower(),
                **({HOST: attempt.host_id} if attempt.host_id else {}),
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": run.spec.agent,
                "gen_ai.conversation.id": thread_id,
                **({"error.type": ending.name.lower()} if failed else {}),
            },
            after=asked.of_attempt(run.run_id, number - 1) if number > 1 else None,
            # The attempt's own reason may be the agent's words.
            error=CONSEQUENCES[ending].says if failed else "",
        )

    def _common(self, thread_id: ThreadId, run: Run) -> dict[str, str | int | bool]:
        agent = self._agents.get(run.spec.agent)
        return {
            THREAD: thread_id,
            RUN: run.run_id,
            AGENT: run.spec.agent,
            "agentvisor.kind": run.spec.kind.name.lower(),
            **({FRAMEWORK: agent.framework} if agent is not None and agent.framework else {}),
        }


def _says(run: Run) -> str:
    last = run.attempts[-1].ending if run.attempts else None
    return CONSEQUENCES[last].says if last is not None else "the run ended before it began"
