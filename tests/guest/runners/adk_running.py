"""Runs of the ADK runner in this process, on thread state that outlives them; after `left` writes it "dies"."""

import json
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, cast

from tests._adk.thread_state_double import Died, ThreadStateDouble

from agentvisor._adk.session_service import AgentVisorSessionService
from agentvisor.client.socketpair import Channel
from agentvisor.client.strict_json import dump
from agentvisor.guest.cancellation import Cancellation
from agentvisor.guest.runners.adk import run_adk
from agentvisor.protocol.v1.guest_pb2 import AgentTask, Outcome, StreamEvents
from agentvisor.protocol.v1.run_pb2 import RunSpec
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

KINDS = {Outcome.KIND_COMPLETED: "completed", Outcome.KIND_PAUSED: "paused", Outcome.KIND_DRAINED: "drained"}


class Recorder:
    """The channel of one thread's runs: keeps what was streamed, and what was reported last."""

    def __init__(self) -> None:
        self.drain_asked = False
        self.streamed: list[tuple[str, Any]] = []
        self.waiting: list[dict[str, Any]] = []
        self.reports = 0

    def send_events(self, events: StreamEvents) -> None:
        self.streamed += [(one.mode, json.loads(one.data)) for one in events.events]

    def submit(self, request: StoreRequest) -> Future[StoreReply]:
        done: Future[StoreReply] = Future()
        done.set_result(StoreReply())
        if request.question.read:
            return done
        self.reports += 1
        self.waiting = [
            {
                "id": one.id,
                "kind": one.kind,
                "value": json.loads(one.value),
                "belongs_to": json.loads(one.belongs_to or b"{}"),
                "schema": json.loads(one.terms.schema) if one.terms.schema else None,
            }
            for one in request.question.report.reported
        ]
        assert not request.question.report.takes_input
        return done

    call = submit


class Thread:
    """One thread, and what its runs came to."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.state = ThreadStateDouble()
        self.channel = Recorder()
        self.runs = 0
        self.attempts = 0
        self.shown: Any = None
        """The latest summary."""

    def run(
        self, given: Any = None, answers: dict[str, Any] | None = None, *, forgets: bool = False, **spec: Any
    ) -> tuple[str, Any]:
        """How a run ended, whatever it took, and its output."""
        self.runs += 1
        command = json.dumps({"resume": answers}).encode() if answers else b""
        message = b"" if given is None else json.dumps(given).encode()
        task = AgentTask(
            thread_id="t",
            run_id=f"run-{self.runs}",
            forgets=forgets,
            spec=RunSpec(agent="shop", input=message, command=command, answers=list(answers or ()), **spec),
        )
        while True:
            task.attempt += 1
            self.attempts += 1
            try:
                channel = cast("Channel", self.channel)
                outcome = run_adk(self.make(), task, channel, Cancellation(), store=self.state, save=self._save)
            except Died:
                self.state.left = None
                continue
            return KINDS[outcome.kind], json.loads(outcome.output) if outcome.output else None

    async def _save(self, key: str, shown: object) -> None:
        assert key == "adk"
        self.shown = json.loads(dump(shown, "summary"))

    async def session(self) -> Any:
        (one,) = (await AgentVisorSessionService(store=self.state).list_sessions(app_name="shop")).sessions
        service = AgentVisorSessionService(store=self.state)
        return await service.get_session(app_name="shop", user_id=one.user_id, session_id=one.id)
