"""Runs a CrewAI crew or flow as a user's file has it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from crewai import Crew, CrewOutput
from crewai.core.providers.human_input import set_provider
from crewai.flow.async_feedback.types import HumanFeedbackPending
from crewai.flow.persistence.factory import set_flow_persistence_factory
from crewai.llms.base_llm import BaseLLM

from agentvisor import checkpoint
from agentvisor._crewai import feedback, plan
from agentvisor._crewai.beginning import Order, progress_for
from agentvisor._crewai.human_input import ThreadHumanInput
from agentvisor._crewai.ledger import Ledger, Paused
from agentvisor._crewai.overlay import Overlay
from agentvisor._crewai.persistence import ThreadPersistence, set_ledger
from agentvisor._crewai.progress import KEY, from_json
from agentvisor._crewai.replay import Replay
from agentvisor._crewai.shown import Shown
from agentvisor.client import waiting
from agentvisor.client.socketpair import Channel
from agentvisor.core.errors import InvalidInput
from agentvisor.guest import plain_json
from agentvisor.guest.cancellation import Cancellation
from agentvisor.guest.runners.crewai_agent import AnyFlow, subject_of, with_our_persistence
from agentvisor.protocol.metadata import Json
from agentvisor.protocol.v1.guest_pb2 import AgentTask, Outcome, StreamEvent, StreamEvents


def run_crewai(agent: object, task: AgentTask, channel: Channel, cancellation: Cancellation) -> Outcome:
    """Run it on the run's thread: COMPLETED with its output, or PAUSED where a person is asked."""
    feedback.check()
    subject = subject_of(agent, task.entrypoint)
    ledger = Ledger(progress_for(_order(task, subject), from_json(checkpoint.load(key=KEY))), _save)
    shown = Shown(lambda data: _send(channel, data), wanted="custom" in task.spec.stream_modes)
    work = _crew(subject, ledger, shown) if isinstance(subject, Crew) else _flow(subject, ledger, shown, task)
    ledger.store()
    # The answers are kept: those that brought them are not asked for them again.
    waiting.report(channel, ledger.still_waiting(), takes_input=False)
    shown.listen()
    result: object = None
    try:
        result = work.run(cancellation)
    except Paused:
        # Told by what was asked, however the pause came out of CrewAI.
        pass
    work.settle()
    if ledger.asked:
        waiting.report(channel, ledger.pause(), takes_input=False)
        return Outcome(kind=Outcome.KIND_PAUSED)
    output = plain_json.encode(_output(result), "output")
    ledger.progress.ended = True
    ledger.store()
    return Outcome(kind=Outcome.KIND_COMPLETED, output=output)
